"""What one student may read of a graded submission, as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby

from grader.result import ProblemResult, Status, SubmissionResult, TestResult, shown

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


class Policy(StrEnum):
    """How much a student learns about hidden tests. Visible tests are always shown in full."""

    POINTS = "points"
    """Only how many points they gave."""
    TITLES = "titles"
    """The sentence of each, and whether it passed: no input, no number, no message."""
    FULL = "full"
    """Everything."""


# What a hidden test says under `titles`. Nothing here comes from the student's code, which saw the
# hidden inputs and could have put them into a message.
_FIXED = {
    Status.PASSED: "passed",
    Status.FAILED: "the answer is wrong",
    Status.ERROR: "your code raised an exception",
    Status.NOT_IMPLEMENTED: "not written yet",
    Status.MISSING: "not found in your file",
    Status.FORBIDDEN: "a forbidden function was called",
    Status.TIMEOUT: "your code did not come to an end in time",
    Status.MEMORY: "your code ran out of memory",
    Status.CRASH: "your code ended its process",
    Status.BAD_OUTPUT: "what came back could not be read",
    Status.INTERNAL: "the grader failed; this is not your fault",
}


def feedback(result: SubmissionResult, policy: Policy) -> str:
    """Return the Markdown text of what the student may read.

    Args:
        result: everything that is known.
        policy: what to show of hidden tests.
    """
    lines = [
        f"# {_text(result.submission)}",
        "",
        f"{shown(result.points)} of {shown(result.max)} points",
        "",
    ]
    for note in result.notes:
        lines += [_text(note), ""]
    for problem in result.problems:
        lines += _problem(problem, policy)
    return "\n".join(lines)


def _problem(problem: ProblemResult, policy: Policy) -> list[str]:
    lines = [f"## {problem.id}: {shown(problem.points)} of {shown(problem.max)} points", ""]
    for sentence in problem.notes:
        lines += [_text(sentence), ""]
    for sentence in problem.diagnoses:
        lines += [_text(sentence), ""]
    visible = [test for test in problem.tests if not test.hidden]
    hidden = [test for test in problem.tests if test.hidden]
    lines += _shown(visible)
    if hidden:
        lines += ["", *_hidden(hidden, policy)]
    return [*lines, ""]


def _hidden(tests: list[TestResult], policy: Policy) -> Iterator[str]:
    points, most = sum(t.points for t in tests), sum(t.max for t in tests)
    yield f"Hidden tests: {shown(points)} of {shown(most)} points"
    if policy is not Policy.POINTS:
        yield ""
    if policy is Policy.TITLES:
        for cases in _functions(tests):
            yield f"- {_text(cases[0].title)}: {_FIXED[_worst(cases)]}"
    if policy is Policy.FULL:
        yield from _shown(tests)


def _shown(tests: list[TestResult]) -> list[str]:
    """Return each test with the message of its first case that failed."""
    lines = []
    for cases in _functions(tests):
        failed = [test for test in cases if test.status is not Status.PASSED]
        lines.append(f"- {_text(cases[0].title)}: {_FIXED[_worst(cases)]}")
        if failed and failed[0].message:
            lines += ["", *_code(failed[0].message), ""]
    return lines


def _functions(tests: list[TestResult]) -> list[list[TestResult]]:
    return [list(cases) for _, cases in groupby(tests, key=lambda test: test.name)]


def _worst(cases: list[TestResult]) -> Status:
    return next((t.status for t in cases if t.status is not Status.PASSED), Status.PASSED)


def _code(text: str) -> list[str]:
    """Return text as an indented code block, in which Markdown knows no signs."""
    return [f"      {_CONTROL.sub('�', line)}" for line in text.splitlines()]


def _text(text: str) -> str:
    """Return text with everything that Markdown or HTML would take for a sign escaped."""
    return re.sub(r"([\\`*_{}\[\]<>#|!&~])", r"\\\1", _CONTROL.sub("�", text))
