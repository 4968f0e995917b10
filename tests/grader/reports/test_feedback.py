"""Feedback shows visible tests in full, and hidden tests as the policy allows."""

from __future__ import annotations

from dataclasses import replace

from grader.reports.feedback import feedback_page
from grader.result import NOT_YET, Policy, ProblemResult, Status, SubmissionResult, TestResult
from tests.results import feedback_text, result_of

TITLE = "The rows sum to 1"


def result(message: str) -> SubmissionResult:
    tests = [
        TestResult("test_seen[1]", TITLE, False, 1, Status.FAILED, "f(x)\nIt returned 2."),
        TestResult("test_seen[2]", TITLE, False, 1, Status.PASSED),
        TestResult("test_unseen", "Other numbers", True, 2, Status.ERROR, message),
    ]
    diagnoses = ["Your output is ..."]
    return result_of("ada", ProblemResult("01-softmax", tests=tests, diagnoses=diagnoses))


def test_visible_tests_are_shown_in_full() -> None:
    text = feedback_text(result(""), Policy.POINTS)
    assert "1 of 4 points" in text
    assert "It returned 2." in text
    assert "Your output is" in text


def test_rows_of_numbers_are_not_wrapped_on_a_small_screen() -> None:
    ada = result("")
    message = "f(x)\nAll rows differ:\n  row [0]: got [<1>]"
    ada.problems[0].tests[0] = replace(ada.problems[0].tests[0], message=message)
    page = feedback_page(ada, Policy.FULL)
    assert 'f(x)\nAll rows differ:\n<span class="rows">  row [0]: got [&lt;1&gt;]</span>' in page


def test_sentences_about_a_problem_are_not_repeated_for_each_test() -> None:
    missing = "There is no folder 01-softmax in the submission."
    ada = result(missing)
    ada.problems[0].tests.append(
        TestResult("test_seen_too", "The dtype stays", False, 1, Status.MISSING, missing)
    )
    assert feedback_text(ada, Policy.FULL).count(missing) == 2
    ada.problems[0].notes.append(missing)
    assert feedback_text(ada, Policy.FULL).count(missing) == 1


def test_a_common_message_is_shown_once() -> None:
    ada = result("")
    why = "problem.py can't be read as Python: invalid syntax"
    said = [(why, False), (why, False), (f"{NOT_YET}{why}", False), (why, True)]
    tests = [
        TestResult(f"test_{number}", f"Title {number}", hidden, 1, Status.ERROR, message)
        for number, (message, hidden) in enumerate(said)
    ]
    ada.problems[0] = ProblemResult("01-softmax", tests=tests)
    text = feedback_text(ada, Policy.FULL)
    assert text.count(why) == 1
    assert all(f"Title {number}: your code raised an exception" in text for number in range(4))


def test_tests_of_missing_files_are_not_listed() -> None:
    ada = result("")
    tests = [replace(test, status=Status.MISSING, message="") for test in ada.problems[0].tests]
    note = "There is no folder 01-softmax in the submission."
    ada.problems[0] = ProblemResult("01-softmax", tests=tests, notes=[note])
    text = feedback_text(ada, Policy.FULL)
    assert note in text
    assert "0 of 4 points" in text
    assert TITLE not in text
