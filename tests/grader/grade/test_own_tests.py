"""`grader grade --break`: the tests that students handed in, beside their marks."""

from __future__ import annotations

import csv
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from grader.author.making_edits import written
from grader.course import Course
from grader.diagnose.edits import edits_file, mistakes_of
from grader.grade.class_run import grade_class
from grader.grade.settings import Settings
from grader.intake.submissions import find_submissions
from grader.result import Policy
from tests.conftest import copy_with_one_problem

ONE_TEST = '''
import pytest
# --- hidden tests ---
@pytest.mark.points(10)
def test_all(problem):
    """All is right"""
    assert callable(problem.softmax)
'''
"""In place of all of the problem's, which take longer and tell no more of what is asked here."""
GOOD = b"""
import torch
def test_rows(problem):
    x = torch.randn(3, 4)
    assert torch.allclose(problem.softmax(x), torch.softmax(x, -1), atol=1e-6)
"""
BAD = b"def test_it(problem):\n    assert problem.softmax.__name__ == 'mine'\n"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the sandbox exists on Linux only"),
    pytest.mark.usefixtures("lent"),
]


@pytest.fixture
def course(tmp_path) -> Course:
    """A course of one problem with one test and a small catalogue."""
    course = copy_with_one_problem(tmp_path / "course", "01")
    (problem,) = course.problems()
    problem.test_file.write_text(ONE_TEST, encoding="utf-8")
    edits = [replace(each.edit, core=False) for each in mistakes_of(course, problem)][::12]
    few = "\n".join(written(edit) for edit in edits)
    edits_file(course, problem).write_text(few, encoding="utf-8")
    names = [*course.right_files(problem)]
    kept = {*names[::8], *(edit.base for edit in edits)}
    for name, path in course.right_files(problem).items():
        if name not in kept:
            path.unlink()
    return course


def graded(course: Course, classroom: Path, out: Path, *, own_tests: bool) -> list[dict[str, str]]:
    grade_class(
        find_submissions([classroom], course),
        course,
        Settings(own_tests=own_tests),
        out,
        jobs=1,
        policy=Policy.TITLES,
    )
    with (out / "gradebook.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_they_have_columns_of_their_own_and_change_no_mark(course, tmp_path):
    classroom, out = tmp_path / "class", tmp_path / "out"
    solution = course.solution(course.problems()[0]).read_bytes()
    for name, tests in {"ada": GOOD, "bob": BAD, "cyd": None}.items():
        folder = classroom / name / "01-softmax"
        folder.mkdir(parents=True)
        (folder / "problem.py").write_bytes(solution)
        if tests is not None:
            (folder / "test_mine.py").write_bytes(tests)
    with zipfile.ZipFile(classroom / "dan.zip", "w") as archive:
        archive.writestr("01-softmax/problem.py", solution)
        archive.writestr("01-softmax/test_mine.py", GOOD)

    plain = graded(course, classroom, out, own_tests=False)
    assert not any(column.startswith("break") for column in plain[0])
    before = results(out)
    rows = graded(course, classroom, out, own_tests=True)
    assert [row["total"] for row in rows] == [row["total"] for row in plain]
    assert [row["max"] for row in rows] == [row["max"] for row in plain]
    ada, bob, cyd, dan = rows
    assert 1 < float(ada["break_01-softmax"]) < 9
    assert ada["break_total"] == ada["break_01-softmax"] == dan["break_total"]
    assert {row["break_max"] for row in rows} == {"10"}
    assert (bob["break_01-softmax"], bob["break_total"]) == ("0", "0")
    assert (cyd["break_01-softmax"], cyd["break_total"]) == ("", "0")
    after = results(out)
    assert [name for name in after if after[name] == before[name]] == ["cyd.json"]
    told = (out / "feedback" / "ada.md").read_text(encoding="utf-8")
    assert "Your own tests" in told
    assert "right solutions" in (out / "feedback" / "bob.md").read_text(encoding="utf-8")

    assert graded(course, classroom, out, own_tests=True) == rows
    assert results(out) == after


def results(out: Path) -> dict[str, bytes]:
    """The files of results; a run that grades anew writes other times."""
    return {path.name: path.read_bytes() for path in (out / "results").glob("*.json")}
