"""The package also checks, grades and audits a different course, which uses only NumPy."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course import Course, own_course
from grader.gradebook.export.feedback_archive import page_text

Run = Callable[..., subprocess.CompletedProcess[str]]

ROOT = own_course().root
COMMAND = "import sys; sys.argv[0] = 'grader'; from grader.cli_instructor import app; app()"

MARKS = {
    "noor-haddad": "10",  # right
    "tomas-silva": "0.67",  # uses a wrong axis, and returns a wrong dtype
    "vera-lund": "0",  # cheats
    "yuki-mori": "0",  # does not end
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """Copy the second course."""
    root = tmp_path_factory.mktemp("second") / "numpy-course"
    shutil.copytree(ROOT / "examples/numpy-course", root)
    return Course(root)


@pytest.fixture(scope="module")
def run(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a command on the course from a different folder."""
    return command_runner(course, tmp_path_factory.mktemp("elsewhere"))


def command_runner(course: Course, folder: Path) -> Run:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", COMMAND, "--course", str(course.root), *words],
            cwd=folder,
            env=os.environ | {"COLUMNS": "120"},
            capture_output=True,
            text=True,
            encoding="utf-8",
        )

    return run


def grade(run: Run, course: Course, out: Path) -> dict[str, str]:
    """Grade the class, and return the marks. On Linux, check that a sandbox was used."""
    level = [] if sys.platform == "linux" else ["--isolation", "process"]
    submissions, limits = str(course.root / "class"), ["--timeout", "0.5", "--jobs", "1", *level]
    done = run("grade", submissions, "--out", str(out), *limits)
    assert done.returncode == 0, done.stdout + done.stderr
    if not level:
        kept = json.loads((out / "results/noor-haddad.json").read_text(encoding="utf-8"))
        assert kept["isolation"] == "sandbox"
    with (out / "gradebook.csv").open(encoding="utf-8-sig") as file:
        return {row[0]: row[3] for row in [*csv.reader(file)][1:]}


@pytest.mark.slow
def test_a_student_runs_check(run: Run) -> None:
    done = run("check", "--hidden")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "0 of 10 points" in done.stdout
    assert "Next: unit_rows (line 15) in problem.py" in done.stdout


@pytest.mark.slow
def test_the_class_is_graded(run: Run, course: Course, tmp_path: Path) -> None:
    assert grade(run, course, tmp_path / "out") == MARKS
    assert_messages(tmp_path / "out")


def assert_messages(out: Path) -> None:
    """Check that a student's feedback names a dtype, a row and the mistake."""
    output = page_text((out / "feedback/tomas-silva.html").read_text(encoding="utf-8"))
    assert "It returned an array of dtype float64, expected float32." in output
    assert "row [0]: got      [1.0000, 0.8944]" in output
    assert "as if each column is divided by its norm" in output


@pytest.mark.slow
def test_the_audit_has_no_findings(run: Run, tmp_path: Path) -> None:
    done = run("author", "audit", "--jobs", "1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    last = " ".join(done.stdout.split("\n\n")[-1].split())
    assert last.endswith(
        "caught 7 of 7 (by visible tests alone 7), named 7 of 7, wrongly failed 0 of 2"
    )


@pytest.mark.slow
def test_the_first_problem_of_a_numpy_course_passes_the_audit(tmp_path: Path) -> None:
    head = 'title = "Empty"\nvalues = "numpy"\n\n[[parts]]\nid = "one"\ntitle = "All"\n'
    (tmp_path / "course.toml").write_text(head, encoding="utf-8")
    run = command_runner(Course(tmp_path), tmp_path)
    assert "there is no [[problems]]" in " ".join(run("check").stderr.split())
    written = run("author", "new", "01-residual-sum").stdout
    assert f"uv run grader --course {tmp_path} author audit 01 --write-fingerprints" in written
    done = run("author", "audit", "--jobs", "1", "--write-fingerprints")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "caught 2 of 2" in done.stdout
