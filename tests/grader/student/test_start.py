"""A student's run loads no unneeded module, and prints a line before it loads PyTorch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grader.course import Course

LEAN = """
import sys, pytest
plugins = ["grader.run.plugin", "grader.student.pytest_screen", "pytest_timeout"]
status = pytest.main([f"-p{name}" for name in plugins])
print("loaded:", *({"sympy", "torch._dynamo", "torch._inductor", "IPython"} & {*sys.modules}))
sys.exit(status)
"""


@pytest.mark.slow
def test_a_correct_solution_loads_few_modules(course: Course, tmp_path: Path) -> None:
    shutil.copytree(course.root / "problems", tmp_path / "problems")
    shutil.copy(course.root / "students/pyproject.toml", tmp_path)
    shutil.copy(course.root / "course.toml", tmp_path)
    folder = tmp_path / "problems/01-softmax"
    shutil.copy(course.root / "solutions/01-softmax/problem.py", folder)
    done = subprocess.run(
        [sys.executable, "-c", LEAN],
        cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_a_line_is_shown_while_torch_is_loaded(small_course: Course) -> None:
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "import grader.run.plugin"], stderr=theirs, stdout=theirs
    )
    os.close(theirs)
    try:
        assert os.read(ours, 100).startswith(b"Loading PyTorch")
    finally:
        process.kill()  # while it loads torch
        process.wait()
        os.close(ours)
