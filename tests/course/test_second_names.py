"""A second name of a layer, or another one for what `forward` takes, costs no points."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import own_course
from grader.grade.pool import grade_all
from grader.grade.settings import Settings
from grader.intake.submissions import Submission, read_source
from grader.result import ProblemResult, Status
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import run_tests

COURSE = own_course()


def in_process(number: str, path: Path) -> ProblemResult:
    (problem,) = (each for each in COURSE.problems() if each.id.startswith(number))
    session = Session(LocalFiles(lambda _: path), hidden=True, diagnose=False)
    run_tests([problem], session, COURSE.root)
    return session.results[problem.id]


def across_the_boundary(number: str, path: Path) -> ProblemResult:
    (problem,) = (each for each in COURSE.problems() if each.id.startswith(number))
    found: list[ProblemResult] = []
    submission = Submission("somebody", {problem.id: read_source(path)})
    grade_all([submission], COURSE, Settings(), 1, lambda result: found.extend(result.problems))
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("graded", [in_process, across_the_boundary])
@pytest.mark.parametrize("number", ["06", "07"])
def test_a_second_name_costs_nothing(number: str, graded) -> None:  # type: ignore[no-untyped-def]
    (path,) = COURSE.root.glob(f"solutions/{number}-*/variants/second_names.py")
    result = graded(number, path)
    assert [test.id for test in result.tests if test.status is not Status.PASSED] == []
