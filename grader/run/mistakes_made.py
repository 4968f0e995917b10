"""Name the mistakes in the tested code after all tests have run.

Each problem's result gets a ranked list of sentences about mistakes. Each failed test's result gets
the names of the mistakes that explain it. If one mistake explains several wrong answers, only the
first message shows numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isclose

import torch

from grader.diagnose.diff_hint import near_one
from grader.diagnose.evidence import Certainty, Evidence, Shown, Source, ranked
from grader.diagnose.fingerprints import Fingerprints
from grader.diagnose.naming import diagnose, unnamed
from grader.diagnose.probe import Answers, ask_with_guard, owner
from grader.errors import CannotLoad
from grader.result import DIAGNOSED, ProblemResult, Status, TestResult
from grader.run.collecting import CollectedTest, ProblemTests
from grader.run.runner import run_test
from grader.run.session import RunsAgain, Session

KEPT = Evidence(
    "It looks as if something is kept from one call to the next: tests that fail here pass when "
    "they run first. What in your file outlives a call? Look for a global, a default argument that "
    "is changed, a cache, or an attribute of a class.",
    Certainty.ALL,
    Source.NUMBERS,
    names=("kept_between_calls",),
)
"""Evidence that a call depends on earlier calls."""

FITS = "The named mistake explains this."
"""The text that replaces a test's numbers if an earlier test with the same mistake has numbers."""

_FACTOR = " times what it should be"

_MOST_RUN_ALONE = 6
"""The maximum number of failed tests that are run again, each alone."""

_REPEATS = 2
"""How many times all tests are run again. A test that fails each time doesn't fail by chance."""


def name_mistakes(session: Session) -> None:
    """Add the names of mistakes to the session's results, for each problem with a wrong answer.

    Problems with a timeout are skipped.
    """
    if not session.names_mistakes:
        return
    for id, result in session.results.items():
        wrong = any(test.status in DIAGNOSED for test in result.tests)
        if wrong and not session.timeouts[id]:
            with torch.enable_grad():  # student code may have switched gradients off
                _name(session, session.tests[id], result)


def _name(session: Session, tests: ProblemTests, result: ProblemResult) -> None:
    evidence: list[Evidence] = []
    code = session.again.get(tests.problem.id) or _InThisProcess(session)
    if tests.probe is not None:
        try:
            answers = code.ask(tests)
        except CannotLoad:
            return
        known = tests.fingerprints
        evidence = diagnose(known, answers, _passing(result))
        result.unknown = unnamed(known, answers, evidence)
    if not evidence and _keeps_state(code, session.ran[result.id], result):
        evidence = [KEPT]
    owners = {owner(part) for part in tests.fingerprints.reference}
    only = owners.pop() if len(owners) == 1 else ""
    shown = {id: replace(e, only=only) for id, e in session.shown[tests.problem.id].items()}
    named = ranked([*_parts_of_first_failure(result, shown), *evidence])
    result.diagnoses = [each.sentence for each in named]
    result.mistakes = [list(each.names) for each in named]
    of_file = _with_mistakes(result.tests, shown, evidence, tests.fingerprints)
    of_file = _with_factors(of_file, shown)
    if not session.hidden and not result.ended_alike:  # at home, only the first failure is shown
        of_file = _most_informative_first(of_file, shown)
    result.tests = [*_numbers_shown_once(of_file, shown, named)]


def _passing(result: ProblemResult) -> set[str]:
    return {test.id for test in result.tests if test.status is Status.PASSED}


def _with_mistakes(
    tests: Sequence[TestResult],
    shown: Mapping[str, Shown],
    evidence: Sequence[Evidence],
    known: Fingerprints,
) -> list[TestResult]:
    """Add to each failed test the names of the mistakes that explain it, and return all tests.

    `_explaining` selects the mistakes of each test. If it selects a mistake for no test, this
    mistake explains the failures of its function for which no other mistake is selected. But the
    mistake is ignored if some tests are known to catch it and none of these tests passed, for
    example because `pytest -k` deselected them.

    Args:
        tests: all tests.
        shown: the evidence about wrong answers, by the test's id.
        evidence: the mistakes.
        known: the answers of all known mistakes.
    """
    failed = [test for test in tests if test.status in DIAGNOSED]
    by = {test.id: _explaining(evidence, test, shown.get(test.id), known) for test in failed}
    explaining = {id(each) for of_test in by.values() for each in of_test}
    passed = {test.name for test in tests} - {test.name for test in failed}
    for each in evidence:
        may_explain = not each.tests or any(id.partition("[")[0] in passed for id in each.tests)
        if id(each) not in explaining and may_explain:
            of_it = (t for t in failed if not by[t.id] and _is_about(each, t))
            by |= {test.id: [each] for test in of_it}
    return [
        replace(test, diagnosis=tuple(name for each in by.get(test.id, ()) for name in each.names))
        for test in tests
    ]


def _explaining(
    evidence: Sequence[Evidence], test: TestResult, shown: Shown | None, known: Fingerprints
) -> list[Evidence]:
    """Return the mistakes that explain the failure of a test.

    The result is the first of these groups that is not empty:

    - mistakes that the test is known to catch, if the sentence about the mistake and the test's
      message contain the same name with an underscore, such as `head_dim`
    - all mistakes that the test is known to catch
    - mistakes that change the numbers of the wrong answer

    If only the last digits of the answer are wrong, mistakes that change numbers are omitted.
    """
    if shown and any(each.source is Source.DIGITS for each in shown.evidence):
        evidence = [each for each in evidence if not each.changes_numbers]
    of_function = [each for each in evidence if _is_of_function(each, test, known)]
    caught = [
        each
        for each in evidence
        if test.id in each.tests
        or (each in of_function and test.name in {id.partition("[")[0] for id in each.tests})
    ]
    by_name = [each for each in caught if _attributes(each.sentence) & _attributes(test.message)]
    return by_name or caught or [e for e in of_function if shown and _changes(e, shown, known)]


def _is_of_function(each: Evidence, test: TestResult, known: Fingerprints) -> bool:
    """Return whether the first line of a test's message names the function of a mistake.

    Also return True if the message's first line names no function, or if the mistake belongs to no
    function.
    """
    words = set(re.findall(r"\w+", test.message.partition("\n")[0]))
    called = words & set(map(owner, known.reference))
    return not called or not each.owners or not called.isdisjoint(each.owners)


def _attributes(text: str) -> set[str]:
    """Return the names with an underscore in a text, such as `head_dim`."""
    return set(re.findall(r"\b[a-z]+_\w+", text))


def _changes(each: Evidence, shown: Shown, known: Fingerprints) -> bool:
    """Return whether a call concerns a part of the probe in which a mistake changes numbers.

    For example, the call "the loss of GPT(...)" concerns two parts: "GPT: loss", because "loss" is
    a word of the call, and "GPT", because this part has no aspect. If the class has neither of
    these parts, the call concerns all parts of the class.
    """
    called = _called(shown, [each])
    if not each.changes_numbers or not called:
        return False
    all_parts = {_aspect(part) for part in known.reference if owner(part) == called}
    words = re.findall(r"\b\w+\b(?!=)", shown.call)
    concerned = all_parts & {"", *words} or all_parts
    changed = [
        part
        for mistake in known.mistakes
        if mistake.name in each.names
        for part, answers in mistake.deviations.items()
        if answers.main
    ]
    return not concerned.isdisjoint(_aspect(p) for p in changed if owner(p) == called)


def _aspect(part: str) -> str:
    """Return the aspect of a part: "loss" for "GPT: loss", and an empty string for "GPT"."""
    return part.partition(": ")[2]


def _is_about(each: Evidence, test: TestResult) -> bool:
    """Return whether a test's title or message names the function or class of a mistake.

    The result is also True if the mistake belongs to no function or class. But if no test is known
    to catch a known mistake, the result is False for all visible tests.
    """
    if each.source is Source.CATALOGUE and not each.tests and not test.hidden:
        return False
    words = re.findall(r"\w+", f"{test.title} {test.message}")
    return not each.owners or not each.owners.isdisjoint(words)


def _with_factors(tests: Iterable[TestResult], shown: Mapping[str, Shown]) -> list[TestResult]:
    """Add a factor to messages: the wrong number divided by the right number.

    Any two numbers differ by some factor, so a single factor means nothing. A function's factors
    are reported only if several tests have a factor. In addition, all factors must be equal, or
    each factor must be a whole number or the inverse of a whole number.
    """
    factors: dict[str, dict[str, float]] = {}
    for id, each in shown.items():
        if each.factor and not any(one.certainty is Certainty.ALL for one in each.evidence):
            factors.setdefault(each.call.partition("(")[0], {})[id] = each.factor
    lines = {id: line for of_one in factors.values() for id, line in _factor_lines(of_one)}
    return [
        replace(test, message=f"{test.message}\n{lines[test.id]}") if test.id in lines else test
        for test in tests
    ]


def _factor_lines(factors: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """Yield (test id, sentence) pairs. Each sentence compares the test's factor with others."""
    for id, factor in factors.items():
        others = [each for other, each in factors.items() if other != id]
        if others and all(isclose(factor, other, rel_tol=1e-3) for other in others):
            yield id, f"It is {_part(factor)}{_FACTOR}, as in other tests."
        elif others and all(map(_is_whole, factors.values())):
            other = next(each for each in others if not isclose(each, factor, rel_tol=1e-3))
            yield id, f"It is {_part(factor)}{_FACTOR}, and {_part(other)} times in another test."


def _is_whole(factor: float) -> bool:
    """Return whether a factor is a whole number or the inverse of a whole number."""
    larger = max(factor, 1 / factor)
    return 0 < larger < 100 and isclose(larger, round(larger), rel_tol=1e-3)


def _part(factor: float) -> str:
    """Format a factor, for example as 0.7, 3 or 1/3."""
    is_part = factor < 1 and _is_whole(factor)
    return f"1/{1 / factor:.3g}" if is_part else near_one(factor)


def _most_informative_first(
    tests: Sequence[TestResult], shown: Mapping[str, Shown]
) -> list[TestResult]:
    """Move the most informative failure to the front, and return all tests.

    If the failed test is parametrized, its other cases follow.

    A failure with a named mistake is the most informative. The next most informative is an
    exception with the shapes of tensors, or a wrong answer with an observation such as a factor.
    If the first failure is about the parts of a module, the order stays unchanged.
    """

    def order(test: TestResult) -> tuple[bool, bool]:
        is_seen = test.id in shown and bool(shown[test.id].evidence)
        is_exception = test.status is Status.ERROR and "\n  " in test.message
        says_much = is_exception or is_seen or _FACTOR in test.message
        return not test.diagnosis, not says_much

    failed = [test for test in tests if test.status in DIAGNOSED and test.is_judged]
    if not failed or (failed[0].id in shown and _about_parts(shown[failed[0].id])):
        return [*tests]
    best = min(failed, key=order)
    cases = [test for test in tests if test.name == best.name and test is not best]
    return [best, *cases, *(test for test in tests if test.name != best.name)]


def _parts_of_first_failure(result: ProblemResult, shown: Mapping[str, Shown]) -> list[Evidence]:
    """Return the first failed test's evidence about the parts of a module.

    The result is empty if the test is hidden, because students may read the evidence.
    """
    first = next(test for test in result.tests if test.status in DIAGNOSED)
    return [] if first.hidden or first.id not in shown else _about_parts(shown[first.id])


def _about_parts(shown: Shown) -> list[Evidence]:
    """Return a test's evidence about the parts of a module."""
    return [each for each in shown.evidence if each.source in (Source.MISSING, Source.PARTS)]


def _numbers_shown_once(
    tests: Iterable[TestResult], shown: Mapping[str, Shown], diagnoses: Sequence[Evidence]
) -> Iterator[TestResult]:
    """Yield the tests, but show wrong numbers only for the first failure of each named mistake.

    The message of each later failure with the same mistake is shortened to one line, which
    contains the call. Messages about NaN or infinity are not shortened.
    """
    shown_mistakes: set[tuple[str, ...]] = set()
    for test in tests:
        each = shown.get(test.id)
        explaining = [d for d in diagnoses if not set(d.names).isdisjoint(test.diagnosis)]
        named = () if each is None else _named(each, explaining)
        if each is None or not named:
            yield test
        elif named not in shown_mistakes:
            shown_mistakes.add(named)
            yield test
        else:
            where = each.where[0].lower() + each.where[1:]
            yield replace(test, message=f"{each.call}: {where}. {FITS}")


def _named(shown: Shown, diagnoses: Sequence[Evidence]) -> tuple[str, ...]:
    """Return the sentences of the mistakes in the function that returned the wrong answer."""
    if not shown.call or not shown.is_finite:
        return ()
    named = [each for each in diagnoses if each.changes_numbers]
    called = _called(shown, named)
    return tuple(each.sentence for each in named if called in each.owners)


def _called(shown: Shown, evidence: Iterable[Evidence]) -> str | None:
    """Return the first word of a call that names the function or class of a mistake, or None."""
    owners = {owner for each in evidence for owner in each.owners}
    words = [*re.findall(r"\w+", shown.call), shown.only] if shown.call else []
    return next((word for word in words if word in owners), None)


def _keeps_state(code: RunsAgain, ran: Iterable[CollectedTest], result: ProblemResult) -> bool:
    """Return whether the code keeps state from one call to the next.

    At least half of the failed tests (or of a sample of them) must pass if each runs alone on a
    reloaded file. The tests that passed alone must fail again when all tests run.
    """
    tests = [test for test in ran if not test.inspection_only]
    wrong = {test.id for test in result.tests if test.status in DIAGNOSED}
    failed = [test for test in tests if test.id in wrong]
    chosen = failed[:: max(1, len(failed) // _MOST_RUN_ALONE)][:_MOST_RUN_ALONE]
    by_itself: set[str] = set()
    for number, test in enumerate(chosen):
        by_itself |= code.passed([test])
        if number - len(by_itself) == len(chosen) // 2:  # too many tests fail even alone
            return False
    fail_again = (by_itself.isdisjoint(code.passed(tests)) for _ in range(_REPEATS))
    return bool(by_itself) and all(fail_again)


class _InThisProcess:
    """Runs a problem's code again in this process."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def ask(self, tests: ProblemTests) -> dict[str, Answers]:
        """Return the answers to the problem's probe, by part.

        Raises:
            CannotLoad: the file can't be used.
        """
        assert tests.probe is not None
        session, problem = self._session, tests.problem
        session.open_problem.forget(problem)
        open_problem = partial(session.open_problem, problem)
        return ask_with_guard(tests.probe, problem.entry, open_problem, watch=session.watch)

    def passed(self, tests: Sequence[CollectedTest]) -> set[str]:
        """Run tests again, and return the ids of the tests that pass."""
        session = self._session
        session.open_problem.forget(tests[0].problem)
        again = Session(session.open_problem, seed=session.seed, watch=session.watch)
        ended = [run_test(test, again).result for test in tests]
        return {result.id for result in ended if result.status is Status.PASSED}
