"""`grader author new` writes a problem that passes the audit, as CONTRIBUTING.md describes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.author.new import new_problem
from grader.course import Course, own_course
from grader.diagnose.edits import EDITS_FILE
from grader.errors import UsageError
from tests.warm import WarmPython

Run = Callable[..., subprocess.CompletedProcess[str]]

ROOT = own_course().root
COMMAND = "import sys; sys.argv[0] = 'grader'; from grader.cli_instructor import app; app()"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the course, and add the two folders of a new problem."""
    root = tmp_path_factory.mktemp("a course")
    for name in ("docs", "grader", "problems", "solutions"):
        without = shutil.ignore_patterns("__pycache__", EDITS_FILE, "variants")
        shutil.copytree(ROOT / name, root / name, ignore=without)
    for name in ("course.toml", "LICENSE"):
        shutil.copy(ROOT / name, root)
    new_problem(Course(root), "99-residual-sum")
    return root


@pytest.fixture
def run(course: Path, warm_python: WarmPython) -> Run:
    """Return a function that runs a grader command in the copy."""
    environment = os.environ | {"PYTHONPATH": str(course), "COLUMNS": "120"}
    return lambda *words: warm_python.run("-c", COMMAND, *words, cwd=course, env=environment)


@pytest.mark.slow
def test_the_new_problem_passes_the_audit(course: Path, run: Run) -> None:
    done = run("author", "audit", "99", "--jobs", "1", "--write-fingerprints", "--out", "audit")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = "caught 2 of 2 (by visible tests alone 2), named 2 of 2, wrongly failed 0 of 2"
    assert done.stdout.splitlines()[-1] == summary
    rows = (course / "audit/audit.csv").read_text(encoding="utf-8").splitlines()
    assert "99-residual-sum,in_place,test_arguments_are_not_changed,False,failed,True" in rows
    assert "99-residual-sum,in_place,test_adds,False,passed,True" in rows


@pytest.mark.slow
def test_a_long_name_passes_the_linter(small_course: Course) -> None:
    problem = new_problem(small_course, "12-rotary-position-embedding")
    oracles = problem.folder.parent / "shared"
    folders = [problem.folder, oracles, small_course.solution(problem).parent]
    for command in ("check --select E501", "format --check"):
        ruff = [sys.executable, "-m", "ruff", *command.split(), "--line-length", "100"]
        done = subprocess.run([*ruff, *folders], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_a_new_problem_does_not_replace_existing_oracles(small_course: Course) -> None:
    oracles = new_problem(small_course, "12-sum").folder.parent / "shared/oracles/sum.py"
    before = oracles.read_bytes()
    with pytest.raises(UsageError, match="sum.py already exists"):
        new_problem(small_course, "13-sum")
    assert oracles.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("residual", "two digits and a name"),
        ("99-Residual", "two digits and a name"),
        ("99-2d", "two digits and a name"),
        ("01-sum", "The number 01 is already used by"),
    ],
)
def test_an_invalid_name_is_refused_and_nothing_is_written(
    small_course: Course, name: str, output: str
) -> None:
    before = sorted(small_course.root.rglob("*"))
    with pytest.raises(UsageError, match=output):
        new_problem(small_course, name)
    assert sorted(small_course.root.rglob("*")) == before
