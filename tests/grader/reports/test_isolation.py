"""Every report states how student code was isolated, and warns if there was no sandbox."""

from __future__ import annotations

import json

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


IN_WORDS = {
    Isolation.SANDBOX: "Graded in a sandbox.",
    Isolation.PROCESS: "Graded without a sandbox: submitted code could read and change",
    None: "",
}


@pytest.mark.parametrize("isolation", IN_WORDS)
def test_every_report_states_the_isolation(isolation: Isolation | None) -> None:
    result = graded(isolation)
    on_gradescope = json.loads(results_json(result, Policy.TITLES))["output"]
    for view in (feedback_page(result, Policy.TITLES), on_gradescope):
        assert IN_WORDS[isolation] in view
        assert ("sandbox" in view) is (isolation is not None)
    page = dashboard([result], ["01-doubling"]).replace("&#39;", "'")
    for view in ("\n".join(remarks([result])), page):
        assert (NOT_CONFINED in view) is (isolation is Isolation.PROCESS)


def test_the_page_lists_submissions_without_a_sandbox() -> None:
    results = [graded(Isolation.SANDBOX, "ada"), graded(Isolation.PROCESS, "bob")]
    page = dashboard(results, ["01-doubling"])
    (after,) = page.split("including these marks.</strong></p>")[1:]
    named = after.split("</div>")[0]
    assert "bob" in named
    assert "ada" not in named
    assert "Isolation of student code: process, sandbox" in page
