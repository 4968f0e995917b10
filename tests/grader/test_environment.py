"""What would keep the grader from working is found at the start and said in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from grader.errors import UsageError
from grader.run.environment import require_own_packages


def command(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from grader.cli_instructor import app; app()", *words],
        env={**os.environ, "COLUMNS": "1000", **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_file_in_the_way_of_a_package_is_named(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("x = 1")
    done = command("check", PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert f"{tmp_path / 'numpy.py'} stands in the way of the package numpy" in done.stderr
    assert "unset PYTHONPATH" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("place", ["torch.py", "torch/__init__.py"])
def test_a_module_or_a_package_may_be_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(UsageError, match="in the way of the package torch"):
        require_own_packages()


def test_packages_as_installed_are_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "helpers.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    require_own_packages()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_version_that_can_not_be_printed_is_told_in_a_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from grader.cli_instructor import app; app()", "--version"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("There is no room left")
