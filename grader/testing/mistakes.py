"""Names the mistakes that the code of a run makes, once its tests have run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from grader.errors import CannotLoad
from grader.result import ProblemResult, Status
from grader.testing.diagnosis.naming import Diagnosis, diagnose, unnamed
from grader.testing.diagnosis.probe import ask
from grader.testing.records import CollectedTest, ProblemTests
from grader.testing.runner import run_test
from grader.testing.session import DIAGNOSED, Session

KEPT = Diagnosis(
    ("kept_between_calls",),
    "It looks as if something is kept from one call to the next: what fails here passes when it is "
    "called first. What in your file outlives a call? Look for a global, a default argument that "
    "is changed, a cache, or an attribute of a class.",
)
"""What to tell when code answers rightly until something else was asked before."""

_ASKED_ALONE = 6
"""How many of the failed tests run by themselves."""

_TIMES = 2
"""How often all tests run again then: those have to fail each time, and not by chance."""


def name_mistakes(session: Session) -> None:
    """Ask the code of each problem that has a wrong answer which mistake it makes."""
    if not session.names_mistakes:
        return
    for id, result in session.results.items():
        wrong = any(test.status in DIAGNOSED for test in result.tests)
        if wrong and not session.timeouts[id]:
            with torch.enable_grad():  # code may leave gradients off, for itself alone
                _name(session, session.tests[id], result)


def _name(session: Session, tests: ProblemTests, result: ProblemResult) -> None:
    found: list[Diagnosis] = []
    if tests.probe is not None:
        try:
            code = session.open_problem.reopen(tests.problem, tests.forbidden)
        except CannotLoad:
            return
        answers = ask(tests.probe, code, tests.forbidden if session.watch else ())
        found = diagnose(tests.fingerprints, answers)
        result.unknown = unnamed(tests.fingerprints, answers, found)
    if not found and _keeps_something(session, tests.problem.id):
        found = [KEPT]
    names = tuple(name for diagnosis in found for name in diagnosis.mistakes)
    result.diagnoses = [diagnosis.text for diagnosis in found]
    result.mistakes = [list(diagnosis.mistakes) for diagnosis in found]
    result.tests = [
        replace(test, diagnosis=names) if test.status in DIAGNOSED else test
        for test in result.tests
    ]


def _keeps_something(session: Session, problem: str) -> bool:
    """Tell whether half of the failed tests pass when each of them has the file for itself."""
    tests = [test for test in session.ran[problem] if not test.by_looking]
    wrong = {test.id for test in session.results[problem].tests if test.status in DIAGNOSED}
    failed = [test for test in tests if test.id in wrong]
    chosen = failed[:: max(1, len(failed) // _ASKED_ALONE)][:_ASKED_ALONE]
    by_itself = {test.id for test in chosen if test.id in _passed([test], session)}
    if 2 * len(by_itself) < max(1, len(chosen)):
        return False
    return all(by_itself.isdisjoint(_passed(tests, session)) for _ in range(_TIMES))


def _passed(tests: Sequence[CollectedTest], session: Session) -> set[str]:
    """Return the ids of those tests that pass when they run again, with the file loaded afresh."""
    problem = tests[0].tests
    try:
        session.open_problem.reopen(problem.problem, problem.forbidden)
    except CannotLoad:
        return set()
    again = Session(session.open_problem, seed=session.seed, watch=session.watch)
    ended = [run_test(test, again).result for test in tests]
    return {result.id for result in ended if result.status is Status.PASSED}
