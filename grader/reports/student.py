"""What a student reads in the terminal about one problem."""

from __future__ import annotations

import textwrap
from itertools import groupby

from grader.course import Problem
from grader.result import ProblemResult, Status, TestResult

_WIDTH = 96


def problem_report(problem: Problem, result: ProblemResult, left_out: int) -> str:
    """Return the report on one problem: a line for each test, the points, and what to do next.

    Args:
        problem: the problem, for the path of the student's file.
        result: what its tests found.
        left_out: how many hidden tests were not run.
    """
    lines = [f"{problem.id} · {_points(result.points)} of {_points(result.max)} points", ""]
    for _, cases in groupby(result.tests, key=lambda test: test.name):
        lines += _test_lines(list(cases))
    for text in result.diagnoses:
        lines += ["", _wrap(text)]
    lines += ["", next_step(result)]
    if left_out and result.passed:
        lines.append(f"{left_out} hidden tests check more when your work is graded.")
    return "\n".join(lines) + "\n"


def next_step(result: ProblemResult) -> str:
    """Return the one sentence that tells a student what to do now."""
    wrong = [t for t in result.tests if t.status not in (Status.PASSED, Status.NOT_IMPLEMENTED)]
    if wrong:
        return f"Look at this first: {wrong[0].title}."
    unwritten = [t for t in result.tests if t.status is Status.NOT_IMPLEMENTED]
    if unwritten:
        return f"Next: {unwritten[0].message.removeprefix('not written yet: ')} in problem.py."
    return "All of these tests pass. Well done!"


def _test_lines(cases: list[TestResult]) -> list[str]:
    """Return what to show of one test: a line, and the message of the first case that failed."""
    failed = [t for t in cases if t.status is not Status.PASSED]
    title = cases[0].title
    if not failed:
        return [f"  ✓ {title}"]
    first = failed[0]
    if first.status is Status.NOT_IMPLEMENTED:
        return [f"  ○ {title} — {first.message}"]
    share = f" ({len(failed)} of {len(cases)} cases)" if len(cases) > 1 else ""
    return [f"  ✗ {title}{share}", textwrap.indent(_wrap(first.message), " " * 6)]


def _wrap(text: str) -> str:
    """Wrap sentences to the terminal; leave lines of numbers, which start with a blank, alone."""
    lines = text.splitlines()
    wrapped = [line if line.startswith(" ") else textwrap.fill(line, _WIDTH) for line in lines]
    return "\n".join(wrapped)


def _points(points: float) -> str:
    return f"{points:g}" if points == round(points, 2) else f"{points:.2f}"
