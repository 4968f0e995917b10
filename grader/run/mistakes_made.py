"""Names the mistakes that the code of a run makes, once its tests have run.

What the tests themselves have seen and what is named become one list here, and what is one mistake
is drawn once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from grader.diagnose.evidence import Certainty, Evidence, Shown, Source, ranked
from grader.diagnose.naming import diagnose, unnamed
from grader.diagnose.probe import Answers, ask_where
from grader.errors import CannotLoad
from grader.result import DIAGNOSED, ProblemResult, Status, TestResult
from grader.run.records import CollectedTest, ProblemTests
from grader.run.runner import run_test
from grader.run.session import RunsAgain, Session

KEPT = Evidence(
    "It looks as if something is kept from one call to the next: what fails here passes when it is "
    "called first. What in your file outlives a call? Look for a global, a default argument that "
    "is changed, a cache, or an attribute of a class.",
    Certainty.ALL,
    Source.NUMBERS,
    names=("kept_between_calls",),
)
"""What to tell when code answers rightly until something else was asked before."""

FITS = "That fits the mistake that is named."
"""What is said of a wrong answer that isn't drawn once more."""

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
    found: list[Evidence] = []
    code = session.again.get(tests.problem.id) or _Here(session)
    if tests.probe is not None:
        try:
            answers = code.ask(tests)
        except CannotLoad:
            return
        known = tests.fingerprints
        found = diagnose(known, answers)
        result.unknown = unnamed(known, answers, found)
    if not found and _keeps_something(code, session.ran[result.id], result):
        found = [KEPT]
    shown = session.shown[tests.problem.id]
    told = ranked([*_seen_first(result, shown), *found])
    result.diagnoses = [each.sentence for each in told]
    result.mistakes = [list(each.names) for each in told]
    names = tuple(name for each in found for name in each.names)
    result.tests = [
        replace(test, diagnosis=names) if test.status in DIAGNOSED else test
        for test in _drawn_once(result.tests, shown, told)
    ]


def _seen_first(result: ProblemResult, shown: Mapping[str, Shown]) -> list[Evidence]:
    """Return what the first test that fails has seen of a module's parts, if it is about them.

    All who read names may read it, so it comes of a visible test.
    """
    first = next(test for test in result.tests if test.status in DIAGNOSED)
    if first.hidden or first.id not in shown:
        return []
    of_parts = (Source.MISSING, Source.PARTS)
    return [each for each in shown[first.id].evidence if each.source in of_parts]


def _drawn_once(
    tests: Iterable[TestResult], shown: Mapping[str, Shown], told: Sequence[Evidence]
) -> Iterator[TestResult]:
    """Yield the tests; of wrong answers that one named mistake gives, the first is drawn.

    The others say in one line what was called. NaN and infinity, and what they come of, are no such
    answers.
    """
    drawn: set[tuple[str, ...]] = set()
    for test in tests:
        each = shown.get(test.id)
        named = () if each is None else _named(each, told)
        if each is None or not named:
            yield test
        elif named not in drawn:
            drawn.add(named)
            yield test
        else:
            where = each.where[0].lower() + each.where[1:]
            yield replace(test, message=f"{each.call}: {where}. {FITS}")


def _named(shown: Shown, told: Sequence[Evidence]) -> tuple[str, ...]:
    """Return what is told of the function or class that gave a wrong answer."""
    if not shown.call or not shown.is_finite:
        return ()
    owners = {owner for each in told if each.names for owner in each.owners}
    words = (word for word in re.findall(r"\w+", shown.call) if word in owners)
    called = next(words, None)
    return tuple(each.sentence for each in told if each.names and called in each.owners)


def _keeps_something(code: RunsAgain, ran: Iterable[CollectedTest], result: ProblemResult) -> bool:
    """Tell whether half of the failed tests pass when each of them has the file for itself."""
    tests = [test for test in ran if not test.inspection_only]
    wrong = {test.id for test in result.tests if test.status in DIAGNOSED}
    failed = [test for test in tests if test.id in wrong]
    chosen = failed[:: max(1, len(failed) // _ASKED_ALONE)][:_ASKED_ALONE]
    by_itself: set[str] = set()
    for number, test in enumerate(chosen):
        by_itself |= code.passed([test])
        if number - len(by_itself) == len(chosen) // 2:  # too many fail alone, too
            return False
    fail_again = (by_itself.isdisjoint(code.passed(tests)) for _ in range(_TIMES))
    return bool(by_itself) and all(fail_again)


class _Here:
    """Runs a problem's code again where the session has it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def ask(self, tests: ProblemTests) -> dict[str, Answers]:
        """Return the answers to the problem's probe; may raise CannotLoad."""
        assert tests.probe is not None
        session, problem = self._session, tests.problem
        session.open_problem.forget(problem)
        open_problem = partial(session.open_problem, problem)
        return ask_where(tests.probe, problem.entry, open_problem, watch=session.watch)

    def passed(self, tests: Sequence[CollectedTest]) -> set[str]:
        """Return the ids of those tests that pass."""
        session = self._session
        session.open_problem.forget(tests[0].problem)
        again = Session(session.open_problem, seed=session.seed, watch=session.watch)
        ended = [run_test(test, again).result for test in tests]
        return {result.id for result in ended if result.status is Status.PASSED}
