"""What a student reads in the terminal about one problem."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from grader.result import NOT_YET, ProblemResult, Status, TestResult, shown
from grader.text import counted, printable

WIDTH = 96
"""How wide sentences are at most: longer lines are hard to read."""

_INDENT = 6
_PRINTED_LINES = 10

_WRITTEN = (Status.PASSED, Status.NOT_IMPLEMENTED)


def problem_report(
    result: ProblemResult,
    left_out: int,
    *,
    whole: bool = True,
    in_full: bool = False,
    printed: Mapping[str, str] = MappingProxyType({}),
    width: int = WIDTH,
    encoding: str = "utf-8",
) -> str:
    """Return the report on one problem: what passes, what to look at first, and the points.

    What helps most stands last, where the screen ends: the sentence that names the mistake, the
    first test that fails with its message, and in one line how many others do.

    Args:
        result: what its tests found.
        left_out: how many hidden tests were not run.
        whole: whether all tests of the half were run; points of a part of them say nothing.
        in_full: whether to show the message of every failed test.
        printed: what the student's code printed in each test, by the test's id.
        width: how wide sentences may be.
        encoding: the terminal's; symbols that it does not have are replaced.
    """
    tests = _by_function(result)
    lines = [result.id, "", *_well(tests, width)]
    wrong = [cases for cases in tests if _failed(cases)]
    if in_full and not _stops_alike(result):
        lines += [line for cases in wrong[1:] for line in _wrong_lines(cases, printed, width)]
    lines += ["", trouble(result, printed, in_full=in_full, width=width) or next_step(result)]
    if whole:
        # With more to look at, every line counts: the help begins above, and screens are small.
        blank = [] if wrong else [""]
        lines += [*blank, f"{shown(result.points)} of {shown(result.max)} points."]
    if whole and left_out and result.passed:
        check = "checks" if left_out == 1 else "check"
        hidden = counted(left_out, "hidden test")
        lines.append(f"{hidden} {check} more when your work is graded.")
    return printable("\n".join(lines) + "\n", encoding)


def trouble(
    result: ProblemResult,
    printed: Mapping[str, str] = MappingProxyType({}),
    *,
    in_full: bool = False,
    width: int = WIDTH,
) -> str:
    """Return what to look at first: the mistake's name, and the first test that fails.

    Args:
        result: what the tests found.
        printed: what the student's code printed in each test, by the test's id.
        in_full: whether the messages of the other tests are shown as well.
        width: how wide sentences may be.
    """
    wrong = [cases for cases in _by_function(result) if _failed(cases)]
    if not wrong:
        return ""
    if _stops_alike(result):
        lines = [wrapped(wrong[0][0].message, width), *_printed_lines(wrong[0][0], printed, width)]
        return "\n".join([*lines, "", "So none of the tests can be judged yet."])
    lines = _first_lines(result.diagnoses, wrong[0], printed, width)
    if len(wrong) > 1:
        others = counted(len(wrong) - 1, "other test")
        where = "" if in_full else " All: uv run pytest -v"
        lines += ["", wrapped(f"{others} may well pass once this one does.{where}", width)]
    return "\n".join(lines)


def _first_lines(
    told: Sequence[str], cases: list[TestResult], printed: Mapping[str, str], width: int
) -> list[str]:
    """Return what is known of the mistake, and the first test that fails.

    They stand in this order, unless it is the test's own sentence that comes first of all.
    """
    shown_test = _wrong_lines(cases, printed, width)
    if told and told[0] == _failed(cases)[0].message:
        return [*shown_test, *(line for text in told[1:] for line in ("", wrapped(text, width)))]
    return [*(line for text in told for line in (wrapped(text, width), "")), *shown_test]


def _by_function(result: ProblemResult) -> list[list[TestResult]]:
    return [list(cases) for _, cases in groupby(result.tests, key=lambda test: test.name)]


def _stops_alike(result: ProblemResult) -> bool:
    """Tell whether all tests end with the same words: the file can't be loaded, say."""
    messages = {test.message for test in result.tests if not test.message.startswith(NOT_YET)}
    return len(messages) == 1 and len(result.tests) > 1 and bool(_failed(result.tests))


def _well(tests: list[list[TestResult]], width: int) -> Iterator[str]:
    """Yield a line for each test that passes, or whose code isn't written yet."""
    for cases in tests:
        if not _failed(cases):
            yield _well_line(cases, width)


def next_step(result: ProblemResult) -> str:
    """Return the one sentence that tells a student what to do now."""
    wrong = [t for t in result.tests if t.status not in _WRITTEN]
    if wrong:
        return f"Look at this first: {wrong[0].title}."
    unwritten = [t for t in result.tests if t.status is Status.NOT_IMPLEMENTED]
    if unwritten:
        return f"Next: {unwritten[0].message.removeprefix('not written yet: ')} in problem.py."
    return "All of these tests pass. Well done!"


def _failed(cases: list[TestResult]) -> list[TestResult]:
    """Return the cases with a wrong answer; what isn't written yet has none."""
    return [t for t in cases if t.status not in _WRITTEN]


def _well_line(cases: list[TestResult], width: int) -> str:
    """Return what to show of a test that passes, or whose code isn't written yet."""
    title = cases[0].title
    unwritten = [test for test in cases if test.status is Status.NOT_IMPLEMENTED]
    return _titled(f"○ {title} — {unwritten[0].message}" if unwritten else f"✓ {title}", width)


def _titled(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="  ", subsequent_indent="    ")


def _wrong_lines(cases: list[TestResult], printed: Mapping[str, str], width: int) -> list[str]:
    """Return what to show of a test that fails: title, message and prints of its first case."""
    failed = _failed(cases)
    share = f" ({len(failed)} of {len(cases)} cases)" if len(cases) > 1 else ""
    title = _titled(f"✗ {cases[0].title}{share}", width)
    inner = width - _INDENT
    below = [wrapped(failed[0].message, inner), *_printed_lines(failed[0], printed, inner)]
    return [title, textwrap.indent("\n".join(below), " " * _INDENT)]


def _printed_lines(test: TestResult, printed: Mapping[str, str], width: int) -> list[str]:
    """Return the first lines of what the student's code printed in a test, under a heading."""
    lines = printed.get(test.id, "").rstrip().splitlines()
    if not lines:
        return []
    shown_lines = [f"  {_cut(line, width - 2)}" for line in lines[:_PRINTED_LINES]]
    left = len(lines) - len(shown_lines)
    more = [f"  ... and {counted(left, 'line')} more; `uv run pytest -s` shows all"] if left else []
    return ["Your code printed:", *shown_lines, *more]


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def wrapped(text: str, width: int) -> str:
    """Wrap lines to the terminal; what goes on of code and numbers stands two places further in."""
    return "\n".join(_wrapped_line(line, width) for line in text.splitlines())


def _wrapped_line(line: str, width: int) -> str:
    """Wrap a line at its blanks; one of code or numbers starts with some."""
    indent = len(line) - len(line.lstrip(" "))
    further = " " * (indent + 2) if indent else ""
    return textwrap.fill(line, width, subsequent_indent=further, break_on_hyphens=not indent)
