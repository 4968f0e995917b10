"""Write the report on one problem for the student's terminal."""

from __future__ import annotations

import ast
import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from grader.course import Course, Problem
from grader.result import ProblemResult, Status, TestResult, shown, total
from grader.run.mistakes_made import FITS
from grader.student.seen import Reading, named
from grader.text import counted, printable

WIDTH = 96
"""The maximum number of columns of a line. Longer lines are hard to read."""

_INDENT = 6
_PRINTED_LINES = 10


def problem_report(
    result: ProblemResult,
    left_out: int,
    *,
    whole: bool = True,
    in_full: bool = False,
    printed: Mapping[str, str] = MappingProxyType({}),
    reading: Reading | None = None,
    width: int = WIDTH,
    encoding: str = "utf-8",
) -> str:
    """Return the report on one problem: passed tests, the first failed test, and the points.

    The most helpful lines come last, at the end of the screen: the first failed test with its
    message, the sentence about the mistake, and the number of other failed tests.

    Args:
        result: the result of the problem.
        left_out: the number of hidden tests that did not run.
        whole: whether all visible tests ran. If not, points are not shown.
        in_full: whether to show each test, and the message of every failed test.
        printed: for each test id, the output of the student's code in the test.
        reading: the sentences about the first failure. By default, they name the mistake.
        width: the maximum number of columns of a line.
        encoding: the terminal's encoding; unsupported symbols are replaced.
    """
    reading = reading or named(result)
    tests = result.with_cases
    lines = [result.id]
    if not_failed := [*_lines_without_failures(tests, width, in_full=in_full)]:
        lines += ["", *not_failed]
    wrong = _failed_tests(tests)
    if in_full and not _all_fail_alike(result):
        lines += [
            line for cases in wrong[1:] for line in _wrong_lines(cases, printed, reading, width)
        ]
    failure = failure_report(result, printed, reading=reading, in_full=in_full, width=width)
    lines += ["", failure or next_step(result)]
    if whole:
        # Leave out the blank line after a failure, because screens are small.
        blank = [] if wrong else [""]
        lines += [*blank, f"{shown(whole_points(result))} of {shown(result.max)} points."]
    if whole and left_out and result.passed:
        check = "checks" if left_out == 1 else "check"
        hidden = counted(left_out, "hidden test")
        lines.append(f"{hidden} {check} more when your work is graded.")
    return printable("\n".join(lines) + "\n", encoding)


def whole_points(result: ProblemResult) -> float:
    """Return the sum of the points of the tests for which all cases passed."""
    tests = result.with_cases
    return total(case.points for cases in tests if _all_pass(cases) for case in cases)


def failure_report(
    result: ProblemResult,
    printed: Mapping[str, str] = MappingProxyType({}),
    *,
    reading: Reading | None = None,
    in_full: bool = False,
    width: int = WIDTH,
) -> str:
    """Return the lines about the first failed test, or "" if no test failed.

    Args:
        result: the result of the problem.
        printed: for each test id, the output of the student's code in the test.
        reading: the sentences about the first failure. By default, they name the mistake.
        in_full: whether the messages of the other tests are shown as well.
        width: the maximum number of columns of a line.
    """
    tests = result.with_cases
    wrong = _failed_tests(tests)
    if not wrong:
        return ""
    if _all_fail_alike(result):
        lines = [wrapped(wrong[0][0].message, width), *_printed_lines(wrong[0][0], printed, width)]
        return "\n".join([*lines, "", "So none of the tests can be judged yet."])
    reading = reading or named(result)
    lines = _first_lines(reading, wrong[0], printed, width)
    last = _last_lines(len(wrong) - 1, len(_blocked_tests(tests)), reading.more, in_full=in_full)
    return "\n".join([*lines, *([""] if last else []), *(wrapped(line, width) for line in last)])


def _last_lines(wrong: int, waiting: int, more: str, *, in_full: bool) -> list[str]:
    """Return lines about the tests after the first failed test, and the commands that show more.

    Args:
        wrong: the number of other failed tests.
        waiting: the number of tests that cannot be judged before the first failed test passes.
        more: a text with the command that names the mistake, or "".
        in_full: whether all tests are shown already.
    """
    said = []
    if wrong:
        said.append(f"{counted(wrong, 'other test')} may well pass once this one does.")
    if waiting:
        said.append(f"{counted(waiting, 'test')} {'waits' if waiting == 1 else 'wait'} for it.")
    everything = "All: uv run pytest -v" if said and not in_full else ""
    where = " · ".join(text for text in (everything, more) if text)
    if len(said) == 1 and not more:
        return [f"{said[0]} {where}".rstrip()]
    return [text for text in (" ".join(said), where) if text]


def _first_lines(
    reading: Reading, cases: list[TestResult], printed: Mapping[str, str], width: int
) -> list[str]:
    """Return the lines about the first failed test, with the sentences about its mistake.

    A sentence that names the mistake comes before the test. A question comes after the test, so
    that the student sees the numbers first.
    """
    sentences_shown = reading.sentences
    shown_test = _wrong_lines(cases, printed, reading, width)
    nudge = ["", wrapped(reading.nudge, width)] if reading.nudge else []
    if sentences_shown and sentences_shown[0] == _failed(cases)[0].message:
        below = [line for text in sentences_shown[1:] for line in ("", wrapped(text, width))]
        return [*shown_test, *below, *nudge]
    above = [line for text in sentences_shown for line in (wrapped(text, width), "")]
    return [*above, *shown_test, *nudge]


def _all_fail_alike(result: ProblemResult) -> bool:
    """Return whether all tests fail with the same message, for example about a syntax error."""
    return result.ended_alike and len(result.tests) > 1 and bool(_failed(result.tests))


def _lines_without_failures(
    tests: list[list[TestResult]], width: int, *, in_full: bool
) -> Iterator[str]:
    """Yield lines about the passed tests and about the functions that are not written yet."""
    passed = [cases for cases in tests if _all_pass(cases)]
    if in_full:
        yield from (_titled(f"✓ {cases[0].title}", width) for cases in passed)
    elif passed:
        verb = "passes" if len(passed) == 1 else "pass"
        yield _titled(f"✓ {len(passed)} of {counted(len(tests), 'test')} {verb}", width)
    for place, count in _unwritten(tests).items():
        verb = "waits" if count == 1 else "wait"
        yield _titled(f"○ {place}: {counted(count, 'test')} {verb} for it", width)
    if in_full:
        for cases in _blocked_tests(tests):
            yield _titled(f"○ {cases[0].title} — {_failed(cases)[0].message}", width)


def _unwritten(tests: list[list[TestResult]]) -> Counter[str]:
    """Count the tests of each unwritten function. The keys are results of `_function_and_line`."""
    waiting = (cases for cases in tests if not _failed(cases) and not _all_pass(cases))
    return Counter(_function_and_line(next(t for t in cases if t.message)) for cases in waiting)


def _function_and_line(test: TestResult) -> str:
    """Return the name and line of the function that is not written, such as "softmax, line 39"."""
    text = test.message.removeprefix("not written yet: ")
    return re.sub(r" \((line \d+)\)$", r", \1", text)


def next_step(result: ProblemResult) -> str:
    """Return a sentence about the student's next step."""
    wrong = _failed_tests(result.with_cases)
    if wrong and _all_fail_alike(result):
        return wrong[0][0].message.partition("\n")[0]
    if wrong:
        return f"Look at this first: {wrong[0][0].title}."
    unwritten = [t for t in result.tests if t.status is Status.NOT_IMPLEMENTED]
    if unwritten:
        return f"Next: {unwritten[0].message.removeprefix('not written yet: ')} in problem.py."
    return "All of these tests pass. Well done!"


def _all_pass(cases: list[TestResult]) -> bool:
    return all(test.status is Status.PASSED for test in cases)


def _failed(cases: list[TestResult]) -> list[TestResult]:
    return [test for test in cases if test.is_wrong]


def _is_blocked(cases: list[TestResult]) -> bool:
    """Return whether some of a test's cases failed, and none of the failed cases can be judged."""
    failed = _failed(cases)
    return bool(failed) and not any(test.is_judged for test in failed)


def _blocked_tests(tests: list[list[TestResult]]) -> list[list[TestResult]]:
    """Return the tests that cannot be judged before other tests pass.

    If no other test fails, return an empty list.
    """
    waiting = [cases for cases in tests if _is_blocked(cases)]
    return waiting if len(waiting) < sum(bool(_failed(cases)) for cases in tests) else []


def _failed_tests(tests: list[list[TestResult]]) -> list[list[TestResult]]:
    """Return the failed tests, without those that cannot be judged before other tests pass."""
    waiting = _blocked_tests(tests)
    return [cases for cases in tests if _failed(cases) and cases not in waiting]


def _titled(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="  ", subsequent_indent="    ")


def _wrong_lines(
    cases: list[TestResult], printed: Mapping[str, str], reading: Reading, width: int
) -> list[str]:
    """Return the title of a failed test, and the message and output of its first failed case."""
    first = _failed(cases)[0]
    title = _titled(f"✗ {cases[0].title}", width)
    inner = width - _INDENT
    message = _without_mistake_name(first.message) if reading.withheld else first.message
    below = [wrapped(message, inner), *_printed_lines(first, printed, inner)]
    return [title, textwrap.indent("\n".join(below), " " * _INDENT)]


def _without_mistake_name(message: str) -> str:
    """Return a test's message without the name of a mistake, which is not shown yet.

    If the message contains expected numbers, keep at most one line after them.
    """
    lines = message.replace(FITS, "The same mistake gives this.").splitlines()
    numbers = [place for place, line in enumerate(lines) if re.match(r" +expected ", line)]
    return "\n".join(lines[: numbers[-1] + 2] if numbers else lines)


def _printed_lines(test: TestResult, printed: Mapping[str, str], width: int) -> list[str]:
    """Return a heading and the first lines that the student's code printed in a test.

    Return an empty list if it printed nothing.
    """
    lines = printed.get(test.id, "").rstrip().splitlines()
    if not lines:
        return []
    shown_lines = [f"  {_shortened(line, width - 2)}" for line in lines[:_PRINTED_LINES]]
    left = len(lines) - len(shown_lines)
    more = [f"  ... and {counted(left, 'line')} more; `uv run pytest -s` shows all"] if left else []
    return ["Your code printed:", *shown_lines, *more]


def _shortened(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def wrapped(text: str, width: int) -> str:
    """Wrap the lines of a text at `width` columns.

    Lines that begin with blanks are code or numbers. Their continuation lines are indented by two
    more columns.
    """
    return "\n".join(_wrapped_line(line, width) for line in text.splitlines())


def _wrapped_line(line: str, width: int) -> str:
    indent = len(line) - len(line.lstrip(" "))
    further = " " * (indent + 2) if indent else ""
    return textwrap.fill(line, width, subsequent_indent=further, break_on_hyphens=not indent)


# Lines below the report


def command_to_compare(problem: Problem) -> str:
    """Return the `grader compare` command for a problem, or "" if there is no `compare.py`."""
    has_solutions = Course(problem.folder.parents[1]).comparison(problem).is_file()
    return f"uv run grader compare {problem.id[:2]}" if has_solutions else ""


def where_to_look(problem: Problem, result: ProblemResult) -> str:
    """Return a line with the location of the function or class that the first failed test is about.

    The location, such as "problem.py:31", is relative to the current folder, so terminals can link
    to it. If the student's file contains no functions, return the command that restores the stub.
    Return an empty string if no location was found, or the test's message already contains one.
    """
    test = next((test for test in result.tests if test.is_wrong and test.is_judged), None)
    lines = _definitions(problem)
    if test is None or lines is None or f" {problem.stub.name}:" in test.message:
        return ""
    if not lines and problem.kept_stub.is_file():
        return f"To restore the stub: uv run grader reset {problem.id[:2]}"
    line = _line_number(test, lines)
    return f"Your code: {os.path.relpath(problem.stub)}:{line}" if line else ""


def _line_number(test: TestResult, lines: Mapping[str, int]) -> int | None:
    """Return the line number of the first function or class in a test's message or title.

    Args:
        test: the failed test.
        lines: the line number of each function and class in the student's file.
    """
    words = re.findall(r"\w+", f"{test.message.partition(chr(10))[0]} {test.title}")
    return next((lines[word] for word in words if word in lines), None)


def _definitions(problem: Problem) -> dict[str, int] | None:
    """Return the line number of each function and class in a student's file.

    Return None if the file is missing or is not valid Python.
    """
    try:
        tree = ast.parse(problem.stub.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return None
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node.lineno for node in tree.body if isinstance(node, kinds)}
