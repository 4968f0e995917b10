"""The class page counts the students whose code could be judged."""

from __future__ import annotations

from grader.reports.dashboard import dashboard
from grader.result import ProblemResult, Status, TestResult, not_yet
from tests.results import result_of

FIRST = "01-softmax"


def outcome(name: str, *, ok: bool) -> TestResult:
    status = Status.PASSED if ok else Status.FAILED
    return TestResult(name, f"What {name} asks", False, 2, status, "" if ok else f"no {name}")


def test_only_code_that_ran_is_counted() -> None:
    unread = [
        TestResult("v", "What v asks", False, 2, Status.ERROR, why := "bad archive: 'a.rar'"),
        TestResult("h", "What h asks", True, 6, Status.ERROR, not_yet(why)),
    ]
    ada = ProblemResult(FIRST, "abc", [outcome("v", ok=True), outcome("w", ok=False)])
    results = [result_of("ada", ada), result_of("bob", ProblemResult(FIRST, "", unread))]
    page = dashboard(results, [FIRST])
    assert f"<strong>1 of 1</strong> who tried {FIRST}: What w asks" in page
    assert f"who tried {FIRST}: What v asks" not in page


def test_those_who_could_not_be_judged_are_not_counted() -> None:
    """A test that waits for something else to be right says nothing about who it waits for."""
    waiting = TestResult("h", "What h asks", True, 6, Status.FAILED, not_yet("v is wrong"))
    bob = ProblemResult(FIRST, "", [outcome(n, ok=False) for n in "vw"] + [waiting])
    cem = ProblemResult(FIRST, "", [outcome(n, ok=n != "h") for n in "vwh"])
    page = dashboard([result_of("bob", bob), result_of("cem", cem)], [FIRST])
    assert f"<strong>1 of 1</strong> who tried {FIRST}: What h asks" in page
