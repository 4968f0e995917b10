"""Every report states how student code was isolated, and warns if there was no sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from grader.reports.class_table import remarks
from grader.reports.dashboard import dashboard
from grader.reports.feedback import feedback_page
from grader.reports.gradescope_json import results_json
from grader.reports.wording import NOT_CONFINED
from grader.result import Isolation, Policy, SubmissionResult
from tests.results import result_of


def graded(isolation: Isolation | None, name: str = "ada") -> SubmissionResult:
    return result_of(name, isolation=isolation)


OF_STUDENTS: dict[str, Callable[[SubmissionResult], str]] = {
    "feedback page": lambda result: feedback_page(result, Policy.TITLES),
    "Gradescope": lambda result: json.loads(results_json(result, Policy.TITLES))["output"],
}
OF_INSTRUCTORS: dict[str, Callable[[SubmissionResult], str]] = {
    "terminal": lambda result: "\n".join(remarks([result])),
    "page": lambda result: dashboard([result], ["01-doubling"]).replace("&#39;", "'"),
}


@pytest.mark.parametrize("view", OF_STUDENTS.values(), ids=OF_STUDENTS)
def test_students_read_how_they_were_graded(view: Callable[[SubmissionResult], str]) -> None:
    assert "Graded in a sandbox." in view(graded(Isolation.SANDBOX))
    open_ended = view(graded(Isolation.PROCESS))
    assert "Graded without a sandbox: code that was handed in could read and change" in open_ended
    assert "sandbox" not in view(graded(None))


@pytest.mark.parametrize("view", OF_INSTRUCTORS.values(), ids=OF_INSTRUCTORS)
def test_instructors_read_what_it_means(view: Callable[[SubmissionResult], str]) -> None:
    assert NOT_CONFINED in view(graded(Isolation.PROCESS))
    assert NOT_CONFINED not in view(graded(Isolation.SANDBOX))
    assert NOT_CONFINED not in view(graded(None))


def test_the_page_names_who_was_not_in_a_sandbox() -> None:
    results = [graded(Isolation.SANDBOX, "ada"), graded(Isolation.PROCESS, "bob")]
    page = dashboard(results, ["01-doubling"])
    (after,) = page.split("these marks included.</strong></p>")[1:]
    named = after.split("</div>")[0]
    assert "bob" in named
    assert "ada" not in named
    assert "kept apart by: process, sandbox" in page
