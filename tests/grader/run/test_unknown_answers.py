"""Students are grouped by wrong answers that match no known mistake."""

from __future__ import annotations

import json

from grader.diagnose.kept_answer import EDGE
from grader.diagnose.unknown_answers import groups, same_cause
from grader.result import ProblemResult, Status, SubmissionResult, TestResult
from tests.results import result_of

SCALED = "03-scaled-attention"


def result(name: str, **unknown: dict[str, str]) -> SubmissionResult:
    tests = [TestResult("test_a", "It is scaled", False, 1.0, Status.FAILED)]
    return result_of(name, ProblemResult(SCALED, tests=tests, unknown=unknown))


def test_students_with_the_same_wrong_answers_are_one_group() -> None:
    near, other = "float64 2x3 0 1.00001 2 3 4", "float64 2x3 0 1.1 2 3 4"
    found = groups(
        [
            result("ada", f={"a": "float64 2x3 0 1 2 3 4"}, g={"a": "!TypeError"}),
            result("bob", f={"a": near}, g={"a": "!ValueError"}),
            result("cyd", f={"a": other}),
            result("dan"),
        ]
    )
    assert [(group.submissions, group.parts) for group in found] == [
        (("ada", "bob"), ("f", "g")),
        (("cyd",), ("f",)),
    ]
    assert found[0].failed == ("It is scaled",)


def test_answers_without_a_number_are_compared_at_the_edges() -> None:
    stops = {"a": "!TypeError", EDGE + "b": "float32 2 0 1 1 1 1"}
    assert same_cause(stops, {**stops, "a": "!ValueError"})
    assert not same_cause(stops, {**stops, EDGE + "b": "float32 2 0 2 2 2 2"})
    assert not same_cause(stops, {**stops, "b": "!TypeError"})


def test_a_result_with_unknown_answers_is_read_back() -> None:
    written = result("ada", f={"a": "!TypeError"})
    assert SubmissionResult.from_json(json.loads(json.dumps(written.to_json()))) == written
