"""A student's run loads only what it needs, and prints a line before it loads PyTorch."""

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
def test_a_right_solution_loads_little(course: Course, tmp_path: Path) -> None:
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
def test_hidden_tests_load_no_triton(course: Course) -> None:
    """Python would print 40 lines about leaks if Triton is installed."""
    output = LEAN.replace('"sympy"', '"triton"')
    done = subprocess.run(
        [sys.executable, "-c", output],
        cwd=course.problems()[0].folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "--hidden"},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert "not written yet" in done.stdout
    assert "triton" not in done.stdout.splitlines()[-1]
    assert "leaked" not in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_a_word_stands_on_the_screen_while_torch_is_loaded(small_course: Course) -> None:
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "import grader.run.plugin"], stderr=theirs, stdout=theirs
    )
    os.close(theirs)
    try:
        assert os.read(ours, 100).startswith(b"Loading PyTorch")
    finally:
        process.kill()  # in the middle of it
        process.wait()
        os.close(ours)


@pytest.mark.slow
def test_garbage_is_collected_again_and_one_thread_works_once_torch_is_loaded() -> None:
    code = (
        "import gc, grader.run.plugin as plugin, torch; print(gc.isenabled());"
        "torch.set_num_threads(2);"
        "from grader.run.announce import loaded; loaded(); print(gc.isenabled());"
        "print(torch.get_num_threads())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True", "1"]
