"""The results as JUnit XML (xunit2), for systems that show test runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree as Xml

from grader.files import write_whole
from grader.reports.isolation import for_instructors
from grader.reports.people import by_name
from grader.result import ProblemResult, Status, SubmissionResult, TestResult, shown
from grader.text import line, plain


def write_junit(results: Iterable[SubmissionResult], path: Path) -> None:
    """Write the file, whole or not at all.

    Args:
        results: of the whole class.
        path: the file to write.
    """
    write_whole(path, junit(results))


def junit(results: Iterable[SubmissionResult]) -> str:
    """Return a suite for each submission and a case for each test, hidden ones with all they say.

    Args:
        results: of the whole class.
    """
    root = Xml.Element("testsuites")
    for result in by_name(results):
        root.append(_suite(result))
    Xml.indent(root)
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    return head + Xml.tostring(root, encoding="unicode") + "\n"


def _suite(result: SubmissionResult) -> Xml.Element:
    tests = [test for problem in result.problems for test in problem.tests]
    internal = sum(test.status is Status.INTERNAL for test in tests)
    failed = sum(test.status is not Status.PASSED for test in tests) - internal
    suite = Xml.Element(
        "testsuite",
        name=line(result.shown_name),
        tests=str(len(tests)),
        failures=str(failed),
        errors=str(internal),
        skipped="0",
        time=_seconds(tests),
    )
    properties = Xml.SubElement(suite, "properties")
    for name, value in [
        ("points", shown(result.points)),
        ("max", shown(result.max)),
        ("seed", str(result.seed)),
        ("isolation", for_instructors(result)),
    ]:
        Xml.SubElement(properties, "property", name=name, value=value)
    suite.extend(_case(result, p, test) for p in result.problems for test in p.tests)
    return suite


def _case(result: SubmissionResult, problem: ProblemResult, test: TestResult) -> Xml.Element:
    place = ".".join(plain(part).replace(".", "_") for part in (result.submission, problem.id))
    case = Xml.Element("testcase", classname=place, name=plain(test.id), time=_seconds([test]))
    if test.status is not Status.PASSED:
        kind = "error" if test.status is Status.INTERNAL else "failure"
        told = Xml.SubElement(case, kind, message=plain(test.title), type=test.status.value)
        told.text = plain(test.message)
    return case


def _seconds(tests: list[TestResult]) -> str:
    return f"{sum(test.seconds for test in tests):.3f}"
