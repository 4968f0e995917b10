"""`grader grade --break`: the tests that students handed in, beside their marks."""

from __future__ import annotations

import csv
import sys
import zipfile
from pathlib import Path

import pytest

from grader.course import own_course
from grader.grading.class_run import grade_class
from grader.grading.settings import Settings
from grader.intake.submissions import find_submissions
from grader.result import Policy

COURSE = own_course().only_with(own_course().select(["01"]))
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
]


def graded(classroom: Path, out: Path, *, own_tests: bool) -> list[dict[str, str]]:
    grade_class(
        find_submissions([classroom], COURSE),
        COURSE,
        Settings(own_tests=own_tests),
        out,
        jobs=1,
        policy=Policy.TITLES,
    )
    with (out / "gradebook.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_they_have_columns_of_their_own_and_change_no_mark(tmp_path):
    classroom, out = tmp_path / "class", tmp_path / "out"
    solution = COURSE.solution(COURSE.problems()[0]).read_bytes()
    for name, tests in {"ada": GOOD, "bob": BAD, "cyd": None}.items():
        folder = classroom / name / "01-softmax"
        folder.mkdir(parents=True)
        (folder / "problem.py").write_bytes(solution)
        if tests is not None:
            (folder / "test_mine.py").write_bytes(tests)
    with zipfile.ZipFile(classroom / "dan.zip", "w") as archive:
        archive.writestr("01-softmax/problem.py", solution)
        archive.writestr("01-softmax/test_mine.py", GOOD)

    plain = graded(classroom, out, own_tests=False)
    assert not any(column.startswith("break") for column in plain[0])
    before = results(out)
    rows = graded(classroom, out, own_tests=True)
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

    assert graded(classroom, out, own_tests=True) == rows
    assert results(out) == after


def results(out: Path) -> dict[str, bytes]:
    """The files of results; a run that grades anew writes other times."""
    return {path.name: path.read_bytes() for path in (out / "results").glob("*.json")}
