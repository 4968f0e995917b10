"""What a student reads in the terminal about one problem."""

from __future__ import annotations

import textwrap
from itertools import groupby

from grader.result import ProblemResult, Status, TestResult, shown
from grader.text import counted, printable

_WIDTH = 96

_IN_FULL = 2
"""How many failed tests are shown with their messages; the others with a line each."""


def problem_report(
    result: ProblemResult, left_out: int, *, in_full: bool = False, encoding: str = "utf-8"
) -> str:
    """Return the report on one problem: a line for each test, the points, and what to do next.

    Args:
        result: what its tests found.
        left_out: how many hidden tests were not run.
        in_full: whether to show the message of every failed test.
        encoding: the terminal's; symbols that it does not have are replaced.
    """
    tests = [list(cases) for _, cases in groupby(result.tests, key=lambda test: test.name)]
    wrong = [cases for cases in tests if _failed(cases)]
    explained = wrong if in_full else wrong[:_IN_FULL]
    lines = [result.id, ""]
    for cases in tests:
        lines += _test_lines(cases, with_message=cases in explained)
    if len(explained) < len(wrong):
        lines += ["", "For the other messages: uv run pytest -v"]
    for text in result.diagnoses:
        lines += ["", _wrap(text)]
    lines += ["", next_step(result), f"{shown(result.points)} of {shown(result.max)} points."]
    if left_out and result.passed:
        check = "checks" if left_out == 1 else "check"
        hidden = counted(left_out, "hidden test")
        lines.append(f"{hidden} {check} more when your work is graded.")
    return printable("\n".join(lines) + "\n", encoding)


def first_trouble(result: ProblemResult) -> str:
    """Return what to look at first: the first wrong answer with its message, and the diagnosis."""
    tests = [list(cases) for _, cases in groupby(result.tests, key=lambda test: test.name)]
    wrong = next((cases for cases in tests if _failed(cases)), [])
    lines = _test_lines(wrong, with_message=True) if wrong else []
    for text in result.diagnoses:
        lines += ["", _wrap(text)]
    return "\n".join(lines or [next_step(result)])


def next_step(result: ProblemResult) -> str:
    """Return the one sentence that tells a student what to do now."""
    wrong = [t for t in result.tests if t.status not in (Status.PASSED, Status.NOT_IMPLEMENTED)]
    if wrong:
        return f"Look at this first: {wrong[0].title}."
    unwritten = [t for t in result.tests if t.status is Status.NOT_IMPLEMENTED]
    if unwritten:
        return f"Next: {unwritten[0].message.removeprefix('not written yet: ')} in problem.py."
    return "All of these tests pass. Well done!"


def _failed(cases: list[TestResult]) -> list[TestResult]:
    """Return the cases with a wrong answer; what isn't written yet has none."""
    return [t for t in cases if t.status not in (Status.PASSED, Status.NOT_IMPLEMENTED)]


def _test_lines(cases: list[TestResult], *, with_message: bool) -> list[str]:
    """Return what to show of one test: a line, and the message of the first case that failed."""
    title = cases[0].title
    failed = _failed(cases)
    if failed:
        share = f" ({len(failed)} of {len(cases)} cases)" if len(cases) > 1 else ""
        message = [textwrap.indent(_wrap(failed[0].message), " " * 6)] if with_message else []
        return [f"  ✗ {title}{share}", *message]
    unwritten = [test for test in cases if test.status is Status.NOT_IMPLEMENTED]
    return [f"  ○ {title} — {unwritten[0].message}"] if unwritten else [f"  ✓ {title}"]


def _wrap(text: str) -> str:
    """Wrap sentences to the terminal; leave lines of numbers, which start with a blank, alone."""
    lines = text.splitlines()
    wrapped = [line if line.startswith(" ") else textwrap.fill(line, _WIDTH) for line in lines]
    return "\n".join(wrapped)
