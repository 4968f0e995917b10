"""Run the attacks as an ordinary user. Then the sandbox cannot switch to another user id.

This is a separate file, so that it runs at the same time as `test_attacks.py`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from tests.grader.attacks.test_attacks import TABLE
from tests.processes import NOBODY, python_for_others

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

ROOT = Path(__file__).resolve().parents[3]


def copy_for_others(folder):
    """Copy the grader and these tests to a folder that every user may read."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "grader", folder / "grader", ignore=ignored)
    attacks = "tests/grader/attacks"
    shutil.copytree(ROOT / attacks, folder / attacks, ignore=ignored)
    (folder / "tests/grader/sandbox").mkdir()
    shutil.copy(ROOT / "tests/grader/sandbox/asking.py", folder / "tests/grader/sandbox")
    for path in (ROOT / "tests").glob("*.py"):
        if not path.name.startswith("test_"):  # modules that tests share
            shutil.copy(path, folder / "tests")
    for name in ("pyproject.toml", "course.toml"):
        shutil.copy(ROOT / name, folder)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_attacks_end_the_same_for_an_ordinary_user():
    """The tests of attacks also pass if the grader runs as an ordinary user."""
    with tempfile.TemporaryDirectory(prefix="attacks-") as name:
        folder, scratch = Path(name) / "course", Path(name) / "scratch"
        copy_for_others(folder)
        scratch.mkdir()
        for path in (folder.parent, scratch):
            path.chmod(0o777)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{folder}:{Path(torch.__file__).parents[1]}",
            "HOME": str(scratch),
            "TMPDIR": str(scratch),
            "OMP_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        attacks = "tests/grader/attacks/test_attacks.py::test_attack"
        done = subprocess.run(
            [python_for_others(), "-m", "pytest", "-q", attacks],
            cwd=folder,
            env=environment,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert f"{len(TABLE)} passed" in done.stdout
