"""The results as JUnit XML (xunit2), for systems that show test runs.

Such systems take some ten MB for a whole class. So what a test says is told in short, once, and for
the first tests of a problem that failed; where all of it stands is told, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as Xml

from grader.reports.display_names import Person, by_name, people
from grader.reports.wording import adjustment_lines, for_instructors
from grader.result import BreakResult, ProblemResult, Status, SubmissionResult, TestResult, shown
from grader.text import line, plain

MOST_TESTS = 8
"""How many failed tests of a problem say why."""

MOST_LETTERS = 160
"""How much of that is told."""


def junit(results: Iterable[SubmissionResult]) -> str:
    """Return a suite for each submission and a case for each test, hidden ones too.

    Args:
        results: of the whole class.
    """
    results = by_name(results)
    who = people(results)
    root = Xml.Element("testsuites")
    root.extend(_suite(result, who[result.submission]) for result in results)
    Xml.indent(root, space="")
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(result: SubmissionResult, person: Person) -> Xml.Element:
    tests = [test for problem in result.problems for test in problem.tests]
    internal = sum(test.status is Status.INTERNAL for test in tests)
    failed = sum(test.status is not Status.PASSED for test in tests) - internal
    suite = Xml.Element(
        "testsuite",
        name=person.name,
        tests=str(len(tests)),
        failures=str(failed),
        errors=str(internal),
        skipped="0",
        time=_seconds(tests),
    )
    properties = Xml.SubElement(suite, "properties")
    for name, value in _properties(result):
        Xml.SubElement(properties, "property", name=name, value=value)
    for problem in result.problems:
        suite.extend(_cases(problem, person))
    told = [plain(text) for p in result.problems for text in (*p.notes, *adjustment_lines(p))]
    if told:
        Xml.SubElement(suite, "system-out").text = "\n".join(told)
    return suite


def _properties(result: SubmissionResult) -> Iterator[tuple[str, str]]:
    name = plain(result.submission)
    yield "submission", name
    yield "points", shown(result.points)
    yield "max", shown(result.max)
    for id, part in result.optional.items():
        yield f"part_{id}_points", shown(part.points)
        yield f"part_{id}_max", shown(part.max)
    for problem in result.problems:
        if problem.id:
            yield plain(problem.id), f"{shown(problem.points)} of {shown(problem.max)} points"
        if problem.own_tests is not None:
            yield f"break_{plain(problem.id)}", _about_own_tests(problem.own_tests)
    yield "seed", str(result.seed)
    yield "isolation", for_instructors(result)
    yield "page", f"instructor/{name}.html"


def _about_own_tests(found: BreakResult) -> str:
    said = found.reason or found.about_refusals()
    return plain(
        "; ".join(filter(None, [f"{shown(found.points)} of {shown(found.max)} points", said]))
    )


def _cases(problem: ProblemResult, person: Person) -> Iterator[Xml.Element]:
    # A point divides what some readers show as folders.
    place = ".".join(part.replace(".", "_") for part in (person.name, plain(problem.id)))
    told: dict[str, str] = {}
    for test in problem.tests:
        case = Xml.Element("testcase", classname=place, name=plain(test.id), time=_seconds([test]))
        if test.status is not Status.PASSED:
            kind = "error" if test.status is Status.INTERNAL else "failure"
            ending = Xml.SubElement(case, kind, message=plain(test.title), type=test.status.value)
            ending.text = _why(test, told)
        yield case


def _why(test: TestResult, told: dict[str, str]) -> str | None:
    """Return in short what a test says, unless enough was told already."""
    message = line(test.message)
    if not message or len(told) >= MOST_TESTS:
        return None
    if message in told:
        return f"As {told[message]}."
    told[message] = plain(test.id)
    return f"{message[:MOST_LETTERS]} ..." if len(message) > MOST_LETTERS else message


def _seconds(tests: Iterable[TestResult]) -> str:
    return f"{sum(test.seconds for test in tests):.3f}"
