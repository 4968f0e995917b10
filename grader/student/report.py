"""What a student reads in the terminal about one problem."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from grader.result import ProblemResult, Status, TestResult, shown, total
from grader.run.mistakes_made import FITS
from grader.student.seen import Reading, named
from grader.text import counted, printable

WIDTH = 96
"""How wide sentences are at most: longer lines are hard to read."""

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
    """Return the report on one problem: what passes, what to look at first, and the points.

    What helps most stands last, where the screen ends: the first test that fails with its message,
    what is known of the mistake, and in one line how many other tests fail.

    Args:
        result: what its tests found.
        left_out: how many hidden tests were not run.
        whole: whether all tests of the half were run; points of a part of them say nothing.
        in_full: whether to show each test, and the message of every failed one.
        printed: what the student's code printed in each test, by the test's id.
        reading: what to say of the mistakes; by default all their names.
        width: how wide sentences may be.
        encoding: the terminal's; symbols that it does not have are replaced.
    """
    reading = reading or named(result)
    tests = result.with_cases
    lines = [result.id]
    if well := [*_well(tests, width, in_full=in_full)]:
        lines += ["", *well]
    wrong = _judged(tests)
    if in_full and not _stops_alike(result):
        lines += [
            line for cases in wrong[1:] for line in _wrong_lines(cases, printed, reading, width)
        ]
    help_first = trouble(result, printed, reading=reading, in_full=in_full, width=width)
    lines += ["", help_first or next_step(result)]
    if whole:
        # With more to look at, every line counts: the help begins above, and screens are small.
        blank = [] if wrong else [""]
        lines += [*blank, f"{shown(whole_points(result))} of {shown(result.max)} points."]
    if whole and left_out and result.passed:
        check = "checks" if left_out == 1 else "check"
        hidden = counted(left_out, "hidden test")
        lines.append(f"{hidden} {check} more when your work is graded.")
    return printable("\n".join(lines) + "\n", encoding)


def whole_points(result: ProblemResult) -> float:
    """Return the points of those tests of which every case passes."""
    tests = result.with_cases
    return total(case.points for cases in tests if _all_pass(cases) for case in cases)


def trouble(
    result: ProblemResult,
    printed: Mapping[str, str] = MappingProxyType({}),
    *,
    reading: Reading | None = None,
    in_full: bool = False,
    width: int = WIDTH,
) -> str:
    """Return what to look at first: the first test that fails, and what is known of the mistake.

    Args:
        result: what the tests found.
        printed: what the student's code printed in each test, by the test's id.
        reading: what to say of the mistakes; by default all their names.
        in_full: whether the messages of the other tests are shown as well.
        width: how wide sentences may be.
    """
    tests = result.with_cases
    wrong = _judged(tests)
    if not wrong:
        return ""
    if _stops_alike(result):
        lines = [wrapped(wrong[0][0].message, width), *_printed_lines(wrong[0][0], printed, width)]
        return "\n".join([*lines, "", "So none of the tests can be judged yet."])
    reading = reading or named(result)
    lines = _first_lines(reading, wrong[0], printed, width)
    last = _last_lines(len(wrong) - 1, len(_waiting(tests)), reading.more, in_full=in_full)
    return "\n".join([*lines, *([""] if last else []), *(wrapped(line, width) for line in last)])


def _last_lines(wrong: int, waiting: int, more: str, *, in_full: bool) -> list[str]:
    """Return what to say of the tests that fail beside the first, and where to read more."""
    said = []
    if wrong:
        said.append(f"{counted(wrong, 'other test')} may well pass once this one does.")
    if waiting:
        said.append(f"{counted(waiting, 'test')} {'waits' if waiting == 1 else 'wait'} for it.")
    everything = "All: uv run pytest -v" if said and not in_full else ""
    if not more:
        return [" ".join([*said, everything]).rstrip()] if said else []
    where = " · ".join(text for text in (everything, more) if text)
    return [*([" ".join(said)] if said else []), where]


def _first_lines(
    reading: Reading, cases: list[TestResult], printed: Mapping[str, str], width: int
) -> list[str]:
    """Return what is known of the mistake, and the first test that fails.

    A name stands above, a question in its place below, where one has seen the numbers. The test's
    own sentence comes first of all.
    """
    told = reading.sentences
    shown_test = _wrong_lines(cases, printed, reading, width)
    nudge = ["", wrapped(reading.nudge, width)] if reading.nudge else []
    if told and told[0] == _failed(cases)[0].message:
        below = [line for text in told[1:] for line in ("", wrapped(text, width))]
        return [*shown_test, *below, *nudge]
    above = [line for text in told for line in (wrapped(text, width), "")]
    return [*above, *shown_test, *nudge]


def _stops_alike(result: ProblemResult) -> bool:
    """Tell whether all tests end with the same words: the file can't be loaded, say."""
    return result.ended_alike and len(result.tests) > 1 and bool(_failed(result.tests))


def _well(tests: list[list[TestResult]], width: int, *, in_full: bool) -> Iterator[str]:
    """Yield the tests that pass, as a count unless all are wanted, and what isn't written yet."""
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
        for cases in _waiting(tests):
            yield _titled(f"○ {cases[0].title} — {_failed(cases)[0].message}", width)


def _unwritten(tests: list[list[TestResult]]) -> Counter[str]:
    """Return how many tests wait for each function that isn't written yet, by where it is."""
    waiting = (cases for cases in tests if not _failed(cases) and not _all_pass(cases))
    return Counter(_place_of(next(t for t in cases if t.message)) for cases in waiting)


def _place_of(test: TestResult) -> str:
    """Return what isn't written yet, such as "normalise, line 39"."""
    text = test.message.removeprefix("not written yet: ")
    return re.sub(r" \((line \d+)\)$", r", \1", text)


def next_step(result: ProblemResult) -> str:
    """Return the one sentence that tells a student what to do now."""
    wrong = _judged(result.with_cases)
    if wrong and _stops_alike(result):
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


def _waits(cases: list[TestResult]) -> bool:
    """Tell whether a rule can't be judged before something else is right."""
    failed = _failed(cases)
    return bool(failed) and not any(test.is_judged for test in failed)


def _waiting(tests: list[list[TestResult]]) -> list[list[TestResult]]:
    """Return the tests of rules that wait, where something else is wrong; else none."""
    waiting = [cases for cases in tests if _waits(cases)]
    return waiting if len(waiting) < sum(bool(_failed(cases)) for cases in tests) else []


def _judged(tests: list[list[TestResult]]) -> list[list[TestResult]]:
    """Return the tests that fail, without those of rules that wait."""
    waiting = _waiting(tests)
    return [cases for cases in tests if _failed(cases) and cases not in waiting]


def _titled(text: str, width: int) -> str:
    return textwrap.fill(text, width, initial_indent="  ", subsequent_indent="    ")


def _wrong_lines(
    cases: list[TestResult], printed: Mapping[str, str], reading: Reading, width: int
) -> list[str]:
    """Return what to show of a test that fails: title, message and prints of its first case."""
    first = _failed(cases)[0]
    title = _titled(f"✗ {cases[0].title}", width)
    inner = width - _INDENT
    message = _observed_once(first.message) if reading.withheld else first.message
    below = [wrapped(message, inner), *_printed_lines(first, printed, inner)]
    return [title, textwrap.indent("\n".join(below), " " * _INDENT)]


def _observed_once(message: str) -> str:
    """Return a message with one observation below its numbers, and of no name that isn't told."""
    lines = message.replace(FITS, "The same mistake gives this.").splitlines()
    numbers = [place for place, line in enumerate(lines) if re.match(r" +expected ", line)]
    return "\n".join(lines[: numbers[-1] + 2] if numbers else lines)


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
