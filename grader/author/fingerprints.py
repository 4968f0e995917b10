"""The fingerprints of mistakes, as the audit finds them and as it uses them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from grader.author.candidates import Kind
from grader.author.running import Outcome
from grader.result import Status, TestResult
from grader.testing.diagnose import Fingerprints, deviations, same


def fingerprints_of(outcomes: list[Outcome]) -> dict[str, Any]:
    """Return what is kept of a problem: its reference's answers, and each mistake's that differ."""
    reference = next(o.answers for o in outcomes if o.candidate.kind is Kind.SOLUTION)
    mistakes = {
        outcome.candidate.name: {
            "text": outcome.text,
            "answers": deviations(outcome.answers, reference),
        }
        for outcome in outcomes
        if outcome.candidate.kind is Kind.MISTAKE
    }
    return {"reference": reference, "mistakes": mistakes}


def diagnosed(outcome: Outcome, known: Fingerprints) -> Outcome:
    """Return the outcome with the diagnosis that the known fingerprints give."""
    found = known.diagnose(outcome.answers)
    names = tuple(name for diagnosis in found for name in diagnosis.mistakes)
    tests = [_with_diagnosis(test, names) for test in outcome.result.tests]
    outcome.result.tests[:] = tests
    return outcome


def _with_diagnosis(test: TestResult, names: tuple[str, ...]) -> TestResult:
    return test if test.status is Status.PASSED else replace(test, diagnosis=names)


def same_fingerprints(kept: dict[str, Any], fresh: dict[str, Any]) -> bool:
    """Tell whether kept fingerprints are those that were found now."""
    if kept["mistakes"].keys() != fresh["mistakes"].keys():
        return False
    pairs = [(kept["reference"], fresh["reference"])]
    for name, mistake in fresh["mistakes"].items():
        if kept["mistakes"][name]["text"] != mistake["text"]:
            return False
        pairs.append((kept["mistakes"][name]["answers"], mistake["answers"]))
    return all(a.keys() == b.keys() and all(same(a[q], b[q]) for q in a) for a, b in pairs)
