"""The class page counts only students whose code was judged."""

from __future__ import annotations

import re
from html import unescape

import pytest

from grader.grade.outcome import internal_result
from grader.reports.dashboard import ClassFacts, dashboard
from grader.result import ProblemResult, Status, SubmissionResult, TestResult, not_yet
from tests.results import result_of

FIRST = "01-softmax"
EMPTY = ProblemResult(FIRST)


def outcome(name: str, *, ok: bool) -> TestResult:
    status = Status.PASSED if ok else Status.FAILED
    return TestResult(name, f"What {name} asks", False, 2, status, "" if ok else f"no {name}")


def test_only_executed_code_is_counted() -> None:
    unread = [
        TestResult("v", "What v asks", False, 2, Status.ERROR, why := "bad archive: 'a.rar'"),
        TestResult("h", "What h asks", True, 6, Status.ERROR, not_yet(why)),
    ]
    ada = ProblemResult(FIRST, "abc", [outcome("v", ok=True), outcome("w", ok=False)])
    results = [result_of("ada", ada), result_of("bob", ProblemResult(FIRST, "", unread))]
    page = dashboard(results, [FIRST])
    assert f"<strong>1 of 1</strong> who tried {FIRST}: What w asks" in page
    assert f"who tried {FIRST}: What v asks" not in page


def test_unjudged_tests_are_not_counted() -> None:
    waiting = TestResult("h", "What h asks", True, 6, Status.FAILED, not_yet("v is wrong"))
    bob = ProblemResult(FIRST, "", [outcome(n, ok=False) for n in "vw"] + [waiting])
    cem = ProblemResult(FIRST, "", [outcome(n, ok=n != "h") for n in "vwh"])
    page = dashboard([result_of("bob", bob), result_of("cem", cem)], [FIRST])
    assert f"<strong>1 of 1</strong> who tried {FIRST}: What h asks" in page


def text_of(page: str) -> str:
    """Return the text of a page, in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page[page.index("<h1>") :])).split())


def first_screen(page: str) -> str:
    return text_of(page[: page.index("<h2>Problems")])


def student(name: str, *statuses: Status, mistake: str = "", id: str = FIRST) -> SubmissionResult:
    """Return a student's result of one problem, optionally with a named mistake."""
    tests = [TestResult(f"t{n}", f"Test {n}", False, 2, s) for n, s in enumerate(statuses)]
    made = ([f"It is {mistake}."], [[mistake]]) if mistake else ([], [])
    return result_of(name, ProblemResult(id, "abc", tests, [], *made), identity=name)


STUB, RIGHT, WRONG = Status.NOT_IMPLEMENTED, Status.PASSED, Status.FAILED


@pytest.mark.parametrize(
    "results",
    [[], [student("ada", STUB)], [internal_result("ada", "a fault")], [result_of("eve", EMPTY)]],
)
def test_a_class_without_judged_code_has_no_statistics(results: list[SubmissionResult]) -> None:
    page = text_of(dashboard(results, [FIRST]))
    assert "All students who tried" not in page
    assert "tried by everybody" not in page
    assert "No submitted code runs." in page
    is_fault = bool(results) and results[0].status == "internal"
    assert ("the grader itself failed" in page) is is_fault


def test_the_table_shows_who_needs_help() -> None:
    results = [student("zoe", RIGHT, RIGHT), student("ada", RIGHT, WRONG), student("bob", STUB)]
    page = dashboard(results, [FIRST, "02-next"], facts=ClassFacts("Attention", "2026-11-02"))
    assert text_of(page).startswith("Attention 3 submissions, graded 2026-11-02")
    grid = page[page.index('id="submissions"') : page.index("</table>")]
    assert re.findall(r"<bdi>(\w+)", grid) == ["bob", "ada", "zoe"]  # the fewest points first
    assert re.findall(r'shade(\d)" title="([^"]*)"', grid) == [
        ("2", "mean share of the points"),
        *(("0", "unchanged stub"), ("2", "2 of 4 points"), ("5", "4 of 4 points")),
    ]


def test_a_mistake_of_one_student_is_not_frequent() -> None:
    results = [student("ada", WRONG, mistake="alone"), student("bob", WRONG, mistake="common")]
    results += [student("eve", WRONG, mistake="common"), student("kim", STUB)]
    page = first_screen(dashboard(results, [FIRST]))
    assert f"2 of 3 who tried {FIRST}: It is common." in page
    assert "It is alone." not in page
    screen = first_screen(dashboard(results[:1], [FIRST]))
    assert "No mistake was made by more than one student." in screen


def test_mistakes_in_required_problems_come_first() -> None:
    results = [student(name, WRONG, mistake="optional", id="06-more") for name in ("ada", "bob")]
    results += [student(name, WRONG, mistake="required") for name in ("eve", "kim", "zoe")]
    for problem in (results[0].problems[0], results[1].problems[0]):
        problem.optional, problem.part = True, "two"
    page = dashboard(results, [FIRST], optional={"two": ["06-more"]})
    assert page.index("It is required.") < page.index("It is optional.")


def test_repeated_runs_are_not_shown() -> None:
    ada = student("ada", RIGHT)
    ada.problems[0].repeated = True
    ada.problems += student("ada", STUB, id="02-next").problems
    page = text_of(dashboard([ada], [FIRST, "02-next"]))
    assert "tried again" not in page
    assert "ada : 02: unchanged stub." in page
