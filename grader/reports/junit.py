"""The results as JUnit XML (xunit2), for systems that show test runs.

Such systems read a few MB and show a list. So a case is a problem, and not each of hundreds of
tests; what failed is told in short, with the place where all of it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree as Xml

from grader.files import write_whole
from grader.reports.adjustments import told_adjustments
from grader.reports.isolation import for_instructors
from grader.reports.people import Person, by_name, people
from grader.result import ProblemResult, Status, SubmissionResult, TestResult, shown
from grader.text import counted, line, plain

MOST_TESTS = 8
"""How many failed tests of a problem are told."""

MOST_LETTERS = 160
"""How much of a message is told."""


def write_junit(results: Iterable[SubmissionResult], path: Path) -> None:
    """Write the file, whole or not at all.

    Args:
        results: of the whole class.
        path: the file to write.
    """
    write_whole(path, junit(results))


def junit(results: Iterable[SubmissionResult]) -> str:
    """Return a suite for each submission and a case for each of its problems.

    Args:
        results: of the whole class.
    """
    results = by_name(results)
    who = people(results)
    root = Xml.Element("testsuites")
    root.extend(_suite(result, who[result.submission]) for result in results)
    Xml.indent(root)
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(result: SubmissionResult, person: Person) -> Xml.Element:
    internal = sum(_is_internal(problem) for problem in result.problems)
    suite = Xml.Element(
        "testsuite",
        name=person.name,
        tests=str(len(result.problems)),
        failures=str(sum(not problem.passed for problem in result.problems) - internal),
        errors=str(internal),
        skipped="0",
        time=_seconds(result.problems),
    )
    properties = Xml.SubElement(suite, "properties")
    for name, value in [
        ("submission", plain(result.submission)),
        ("points", shown(result.points)),
        ("max", shown(result.max)),
        ("seed", str(result.seed)),
        ("isolation", for_instructors(result)),
    ]:
        Xml.SubElement(properties, "property", name=name, value=value)
    suite.extend(_case(result, problem, person) for problem in result.problems)
    return suite


def _case(result: SubmissionResult, problem: ProblemResult, person: Person) -> Xml.Element:
    # A point divides what some readers show as folders.
    place, name = person.name.replace(".", "_"), plain(problem.id) or "grader"
    case = Xml.Element("testcase", classname=place, name=name, time=_seconds([problem]))
    told = [plain(text) for text in (*problem.notes, *told_adjustments(problem))]
    if problem.passed:
        if told:
            Xml.SubElement(case, "system-out").text = "\n".join(told)
        return case
    kind = "error" if _is_internal(problem) else "failure"
    status = next((t.status for t in problem.tests if t.status is not Status.PASSED), "missing")
    points = f"{shown(problem.points)} of {shown(problem.max)} points"
    failed = Xml.SubElement(case, kind, message=points, type=str(status))
    whole = f"All of it stands in instructor/{plain(result.submission)}.html."
    failed.text = "\n".join([*told, *_told_tests(problem), whole])
    return case


def _told_tests(problem: ProblemResult) -> Iterator[str]:
    """Give a line for each test that failed, as far as there is room for them."""
    tests = groupby(problem.tests, key=lambda test: test.name)
    cases = [list(cases) for _, cases in tests]
    failed = [bad for each in cases if (bad := [t for t in each if t.status != Status.PASSED])]
    if len({(t.status, t.message) for t in problem.tests}) == 1:
        yield f"All tests: {_ending(problem.tests[0])}"
        return
    yield from (f"{line(each[0].title)}: {_ending(each[0])}" for each in failed[:MOST_TESTS])
    if len(failed) > MOST_TESTS:
        yield f"So failed {counted(len(failed) - MOST_TESTS, 'more test')}."


def _ending(test: TestResult) -> str:
    message = line(test.message)
    cut = f"{message[:MOST_LETTERS]} ..." if len(message) > MOST_LETTERS else message
    return f"{test.status}: {cut}" if cut else str(test.status)


def _is_internal(problem: ProblemResult) -> bool:
    return any(test.status is Status.INTERNAL for test in problem.tests)


def _seconds(problems: Iterable[ProblemResult]) -> str:
    return f"{sum(test.seconds for problem in problems for test in problem.tests):.3f}"
