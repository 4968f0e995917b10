"""Proves the course: what is right passes, what is wrong doesn't, and a mistake is called by name.

For every problem it runs the stub, the reference solution, the right solutions in other styles
(`variants/`) and the catalogue of wrong ones (`mistakes/`) through all tests, several times where
chance could play a part, and lists everything that is not as it should be.
"""

from __future__ import annotations

import ast
import multiprocessing
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from grader.author.release import leaks
from grader.course import Course, Problem
from grader.errors import CannotLoad
from grader.loading import load_module
from grader.result import ProblemResult, Status, TestResult
from grader.testing.diagnose import Answer, Fingerprints, ask, deviations, same
from grader.testing.local_files import LocalFiles
from grader.testing.records import forbidden_in
from grader.testing.session import Session
from grader.testing.suite import Suite

VISIBLE_SHARE = 0.9
"""The share of mistakes that the visible tests alone must catch."""


class Kind(StrEnum):
    """What a candidate is, and so what has to come of it."""

    STUB = "stub"
    SOLUTION = "solution"
    VARIANT = "variant"
    MISTAKE = "mistake"


@dataclass(frozen=True)
class Conditions:
    """Under what conditions a candidate is run. They must make no difference."""

    seed: int
    reverse: bool
    threads: int


def _conditions(number: int) -> Conditions:
    """Return conditions with a seed of their own; four in a row differ in order and threads."""
    return Conditions(number, reverse=number % 2 == 1, threads=1 + number // 2 % 2)


USUAL = _conditions(0)
OTHERS = (_conditions(1), _conditions(2), _conditions(3))
_FEW = 4
"""A mistake that so many cases or fewer catch is run again: they could have caught it by chance."""


@dataclass(frozen=True)
class Candidate:
    """A file to run a problem's tests against, and under what conditions."""

    problem: Problem
    kind: Kind
    path: Path
    conditions: Conditions = USUAL

    @property
    def name(self) -> str:
        """The file's name for a variant or mistake, the kind for the others."""
        numbered = self.kind in (Kind.VARIANT, Kind.MISTAKE)
        return self.path.stem if numbered else self.kind.value


@dataclass(frozen=True)
class Outcome:
    """What came of one candidate.

    Attributes:
        candidate: what was run.
        result: under the candidate's conditions.
        answers: to the problem's probe.
        unsteady: ids of tests that ended otherwise under other conditions.
        text: for a mistake, what its docstring tells the student.
    """

    candidate: Candidate
    result: ProblemResult
    answers: dict[str, Answer]
    unsteady: tuple[str, ...]
    text: str

    @property
    def caught_by(self) -> list[TestResult]:
        """The tests that didn't pass."""
        return _caught(self.result)

    @property
    def caught_visibly(self) -> bool:
        """Whether a visible test alone catches it."""
        return any(not test.hidden for test in self.caught_by)

    @property
    def named(self) -> bool:
        """Whether the report names this mistake: by its diagnosis, or as a forbidden call."""
        by_rule = any(t.status is Status.FORBIDDEN for t in self.caught_by)
        return by_rule or any(self.candidate.name in t.diagnosis for t in self.caught_by)


@dataclass(frozen=True)
class Audit:
    """All outcomes, and the findings: sentences that each tell of one thing to mend."""

    outcomes: list[Outcome]
    findings: list[str]

    def of(self, kind: Kind, problem: Problem | None = None) -> list[Outcome]:
        """Return the outcomes of one kind, of one problem or of all."""
        return [
            o
            for o in self.outcomes
            if o.candidate.kind is kind and problem in (None, o.candidate.problem)
        ]

    def summary(self) -> str:
        """Return the line that one can quote."""
        mistakes = self.of(Kind.MISTAKE)
        right = self.of(Kind.SOLUTION) + self.of(Kind.VARIANT)
        caught, named = sum(bool(m.caught_by) for m in mistakes), sum(m.named for m in mistakes)
        visibly, failed = (
            sum(m.caught_visibly for m in mistakes),
            sum(not r.result.passed for r in right),
        )
        return (
            f"caught {caught} of {len(mistakes)} (by visible tests alone {visibly}), "
            f"named {named} of {len(mistakes)}, wrongly failed {failed} of {len(right)}"
        )


def candidates(course: Course, problems: Iterable[Problem]) -> Iterator[Candidate]:
    """Yield everything there is to run."""
    for problem in problems:
        solutions = course.solution(problem).parent
        yield Candidate(problem, Kind.STUB, problem.stub)
        yield Candidate(problem, Kind.SOLUTION, course.solution(problem))
        # Each variant has conditions of its own, so that the tests draw many different inputs.
        for number, path in enumerate(sorted((solutions / "variants").glob("*.py")), 4):
            yield Candidate(problem, Kind.VARIANT, path, _conditions(number))
        for path in sorted((solutions / "mistakes").glob("*.py")):
            yield Candidate(problem, Kind.MISTAKE, path)


def run_audit(
    course: Course,
    problems: list[Problem],
    jobs: int,
    *,
    write_fingerprints: bool = False,
    on_outcome: Callable[[Outcome], None] = lambda outcome: None,
) -> Audit:
    """Run every candidate and look for what is not as it should be.

    Args:
        course: where solutions, variants and mistakes are.
        problems: which problems to audit.
        jobs: how many candidates to run at the same time.
        write_fingerprints: whether to write `fingerprints.json` anew before it is judged.
        on_outcome: called as each candidate is done.
    """
    outcomes: list[Outcome] = []
    for outcome in _run_all(list(candidates(course, problems)), course.root, jobs):
        outcomes.append(outcome)
        on_outcome(outcome)
    if write_fingerprints:
        for problem in problems:
            fingerprints = Fingerprints(_fingerprints([*_of(outcomes, problem)]))
            fingerprints.save(problem.fingerprints)
    known = {problem: Fingerprints.load(problem.fingerprints) for problem in problems}
    outcomes = [_diagnosed(outcome, known[outcome.candidate.problem]) for outcome in outcomes]
    findings = [f for problem in problems for f in _findings(problem, [*_of(outcomes, problem)])]
    return Audit(outcomes, findings)


def _run_all(todo: list[Candidate], root: Path, jobs: int) -> Iterator[Outcome]:
    """Run the candidates, one at a time in this process or several in others."""
    roots = [root] * len(todo)
    if jobs == 1:
        yield from map(_run, todo, roots)
        return
    # The pool's processes have idle threads at times, which should not keep the cores busy.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        yield from pool.map(_run, todo, roots)


def _of(outcomes: Iterable[Outcome], problem: Problem) -> Iterator[Outcome]:
    return (outcome for outcome in outcomes if outcome.candidate.problem == problem)


# Running one candidate, in a process of the pool


def _run(candidate: Candidate, root: Path) -> Outcome:
    # The guard doubles the time of a run. A mistake needs it only if it calls what is forbidden,
    # and those of the catalogue do so by name. Of what is right, the solution must pass all tests
    # under it, and the variants the probe.
    forbidden = candidate.kind is Kind.MISTAKE and _names_forbidden(candidate)
    answers = _probe_answers(candidate, watch=forbidden or candidate.kind is not Kind.MISTAKE)
    watch = forbidden or candidate.kind is Kind.SOLUTION
    result = _run_once(candidate, candidate.conditions, root, watch=watch)
    unsteady: set[str] = set()
    for conditions in _more_conditions(candidate, result):
        if candidate.kind is Kind.MISTAKE:
            unsteady |= _missed_by_chance(candidate, result, conditions, root, watch=forbidden)
        else:
            again = _run_once(candidate, conditions, root, watch=forbidden)
            unsteady |= _differences(result, again)
    tree = ast.parse(candidate.path.read_bytes())
    text = _student_text(ast.get_docstring(tree) or "")
    return Outcome(candidate, result, answers, tuple(sorted(unsteady)), text)


def _run_once(
    candidate: Candidate,
    conditions: Conditions,
    root: Path,
    *,
    watch: bool,
    tests: Iterable[str] = (),
) -> ProblemResult:
    torch.set_num_threads(conditions.threads)
    session = Session(
        LocalFiles(lambda _: candidate.path),
        hidden=True,
        seed=conditions.seed,
        reverse=conditions.reverse,
        watch=watch,
        diagnose=False,
    )
    _suite(candidate.problem, root).run(session, tests=tests)
    return session.results[candidate.problem.id]


@cache
def _tests(problem: Problem) -> ModuleType:
    return load_module(problem.test_file, f"tests_{problem.id[:2]}")


@cache
def _suite(problem: Problem, root: Path) -> Suite:
    """Return a problem's tests, collected once for all the candidates that this process runs."""
    return Suite([problem], root)


def _names_forbidden(candidate: Candidate) -> bool:
    # nn.LogSoftmax calls log_softmax.
    names, source = (
        text.replace("_", "").lower()
        for text in (
            "|".join(forbidden_in(_tests(candidate.problem))),
            candidate.path.read_text(encoding="utf-8"),
        )
    )
    # As an attribute, by import, or as a text for getattr.
    return bool(names and re.search(rf"(\.|import .*|['\"])({names})\b", source))


def _probe_answers(candidate: Candidate, *, watch: bool) -> dict[str, Answer]:
    tests = _tests(candidate.problem)
    forbidden = forbidden_in(tests) if watch else ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # mistakes do what torch warns of
        try:
            code = LocalFiles(lambda _: candidate.path)(candidate.problem)
        except CannotLoad:
            return {}
        return ask(tests.probe, code, forbidden) if hasattr(tests, "probe") else {}


def _more_conditions(candidate: Candidate, result: ProblemResult) -> tuple[Conditions, ...]:
    """Return under what other conditions to run a candidate; the more, the more hangs on chance."""
    match candidate.kind:
        case Kind.SOLUTION:
            return OTHERS
        case Kind.VARIANT if not result.passed:  # by chance?
            return (USUAL,)
        case Kind.MISTAKE if 0 < len(_caught(result)) <= _FEW:
            return OTHERS[-1:]
        case _:
            return ()


def _caught(result: ProblemResult) -> list[TestResult]:
    return [test for test in result.tests if test.status is not Status.PASSED]


def _differences(usual: ProblemResult, again: ProblemResult) -> set[str]:
    """Return the tests that ended otherwise."""
    before = {test.id: test.status for test in usual.tests}
    return {test.id for test in again.tests if before[test.id] is not test.status}


def _missed_by_chance(
    candidate: Candidate, usual: ProblemResult, conditions: Conditions, root: Path, *, watch: bool
) -> set[str]:
    """Say whether a mistake gets away under other conditions, trying first what caught it."""
    for tests in ([test.id for test in _caught(usual)], ()):
        if not _run_once(candidate, conditions, root, watch=watch, tests=tests).passed:
            return set()
    return {"all tests pass under other conditions"}


def _student_text(docstring: str) -> str:
    """Return what a student reads: the first paragraph says when, the others what to look at."""
    first, _, rest = docstring.partition("\n\n")
    when = " ".join(first.split()).rstrip(".")
    look = " ".join(rest.split())
    return f"Your output is what one gets when {when}. {look}".strip()


# Fingerprints


def _fingerprints(outcomes: list[Outcome]) -> dict[str, Any]:
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


def _diagnosed(outcome: Outcome, known: Fingerprints) -> Outcome:
    """Return the outcome with the diagnosis that the known fingerprints give."""
    found = known.diagnose(outcome.answers)
    names = tuple(name for diagnosis in found for name in diagnosis.mistakes)
    tests = [_with_diagnosis(test, names) for test in outcome.result.tests]
    outcome.result.tests[:] = tests
    return outcome


def _with_diagnosis(test: TestResult, names: tuple[str, ...]) -> TestResult:
    return test if test.status is Status.PASSED else replace(test, diagnosis=names)


# Findings


def _findings(problem: Problem, outcomes: list[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        yield from (f"{problem.id}: {finding}" for finding in _about(outcome))
    solution = next(o for o in outcomes if o.candidate.kind is Kind.SOLUTION)
    tests = solution.result.tests
    mistakes = [o for o in outcomes if o.candidate.kind is Kind.MISTAKE]
    yield from (f"{problem.id}: {f}" for f in _about_tests(tests, mistakes))
    yield from (f"{problem.id}: {f}" for f in _about_readme(problem, tests))
    yield from (f"{problem.id}: {f}" for f in leaks(problem, solution.candidate.path))
    yield from (f"{problem.id}: {f}" for f in _about_fingerprints(problem, outcomes))


def _about(outcome: Outcome) -> Iterator[str]:
    what = f"{outcome.candidate.kind} {outcome.candidate.name}"
    result = outcome.result
    match outcome.candidate.kind:
        case Kind.STUB:
            if result.points or not result.untouched:
                yield f"the stub scores {result.points:g}, or is more than unwritten functions"
        case Kind.SOLUTION | Kind.VARIANT:
            yield from (f"{what} fails {test.id}: {test.message}" for test in outcome.caught_by)
        case Kind.MISTAKE:
            if not outcome.caught_by:
                yield f"{what} passes all tests"
            elif not outcome.named:
                yield f"{what} is caught but not named"
    for test in outcome.unsteady:
        yield f"{what} is unsteady: {test}"


def _about_tests(tests: list[TestResult], mistakes: list[Outcome]) -> Iterator[str]:
    catching = {test.name for mistake in mistakes for test in mistake.caught_by}
    for name in dict.fromkeys(test.name for test in tests):
        if name not in catching:
            yield f"{name} catches no mistake"
    visibly = sum(mistake.caught_visibly for mistake in mistakes)
    if mistakes and visibly < VISIBLE_SHARE * len(mistakes):
        yield f"the visible tests catch only {visibly} of {len(mistakes)} mistakes"


def _about_readme(problem: Problem, tests: list[TestResult]) -> Iterator[str]:
    """Check that the README's points are the tests', and that each of its rules has its test."""
    readme = (problem.folder / "README.md").read_text(encoding="utf-8")
    points = sum(test.max for test in tests)
    promised = re.search(r"(?:Points: (\d+)|(\d+) points)", readme)
    if promised is None or abs(int(promised[1] or promised[2]) - points) > 1e-6:
        yield f"the tests add up to {points:g} points; the README says {promised and promised[0]}"
    rules = re.search(r"^## Rules.*?\n(.*?)^## ", readme, re.MULTILINE | re.DOTALL)
    bullets = re.split(r"^- ", rules[1], flags=re.MULTILINE)[1:] if rules else []
    visible = {test.name for test in tests if not test.hidden}
    if not bullets:
        yield "the README has no list of rules"
    for bullet in bullets:
        named = set(re.findall(r"`(test_\w+)`", bullet))
        if not named or not named <= visible:
            yield f"no visible test is named for the rule: {' '.join(bullet.split())[:80]}"


def _about_fingerprints(problem: Problem, outcomes: list[Outcome]) -> Iterator[str]:
    kept = Fingerprints.load(problem.fingerprints).data
    fresh = _fingerprints(outcomes)
    if not _same_fingerprints(kept, fresh):
        yield "fingerprints.json is not up to date; write it with --write-fingerprints"
    for outcome in outcomes:
        if outcome.candidate.kind is Kind.VARIANT:
            for question in deviations(outcome.answers, fresh["reference"]):
                yield f"variant {outcome.candidate.name} answers '{question}' as a mistake would"


def _same_fingerprints(kept: dict[str, Any], fresh: dict[str, Any]) -> bool:
    if kept["mistakes"].keys() != fresh["mistakes"].keys():
        return False
    pairs = [(kept["reference"], fresh["reference"])]
    for name, mistake in fresh["mistakes"].items():
        if kept["mistakes"][name]["text"] != mistake["text"]:
            return False
        pairs.append((kept["mistakes"][name]["answers"], mistake["answers"]))
    return all(a.keys() == b.keys() and all(same(a[q], b[q]) for q in a) for a, b in pairs)
