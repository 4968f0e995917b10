"""No file next to explore.py shadows a module, and Ctrl-C ends explore.py without a traceback."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course import own_course

SCRIPTS = sorted(own_course().root.glob("problems/*/explore.py"))


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    script = folder / "explore.py"
    script.write_text(f"import grader.student.script\n{code}\n", encoding="utf-8")
    return subprocess.run(
        [sys.executable, "explore.py"], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.parametrize("name", ["numpy", "random", "types", "enum"])
def test_a_students_file_does_not_shadow_a_module(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('mine')\n")
    done = run(tmp_path, f"import {name}, typing; print({name}.__file__)")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path) not in done.stdout


def test_ctrl_c_ends_a_script_without_a_traceback(tmp_path: Path) -> None:
    done = run(tmp_path, "raise KeyboardInterrupt")
    assert done.returncode != 0
    assert done.stderr.strip() == "Stopped."


def test_other_errors_have_a_traceback(tmp_path: Path) -> None:
    assert "ZeroDivisionError" in run(tmp_path, "1 / 0").stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.parent.name)
def test_every_explore_imports_the_script_module_first(script: Path) -> None:
    imports = [
        node
        for node in ast.parse(script.read_text("utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert ast.unparse(imports[0]) == "import grader.student.script"
