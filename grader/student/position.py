"""Finds where a student stands in the course, by testing what is there."""

from __future__ import annotations

from pathlib import Path

from grader.course import Course, Problem, in_order
from grader.result import ProblemResult, Status
from grader.student import hints
from grader.testing.announce import loaded
from grader.testing.local_files import LocalFiles
from grader.testing.session import Session
from grader.testing.suite import run_tests


def position(course: Course, here: Path) -> tuple[Problem, str]:
    """Return the problem that a student is at, and the task within it that a hint is for, or "".

    Args:
        course: the student's copy.
        here: the folder that the student is in: a problem's, or else the next open problem counts.
    """
    loaded()
    inside = [problem for problem in course.problems() if here.is_relative_to(problem.folder)]
    problems = inside or in_order(course.problems())
    for problem in problems:
        session = Session(LocalFiles(), diagnose=False)
        run_tests([problem], session, course.root)
        if not session.results[problem.id].passed:
            return problem, task_at_hand(problem, session.results[problem.id])
    return problems[-1], ""


def task_at_hand(problem: Problem, result: ProblemResult) -> str:
    """Return the task that the first open test speaks of; empty if it speaks of none."""
    open_tests = [test for test in result.tests if test.status is not Status.PASSED]
    words = f"{open_tests[0].title} {open_tests[0].message}" if open_tests else ""
    return hints.about(problem, words)
