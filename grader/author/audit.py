"""Audit the course: correct files must pass, mistakes must fail and be named.

For every problem the audit tests the stub, the reference, other correct files (`variants/`) and the
catalogue of mistakes (`mistakes.edits`). If random numbers matter, it tests them several times.
Then it lists its findings. By default a mistake runs only as many tests as its weight requires. The
answers of mistakes to the probe's questions are read from the saved fingerprints as long as nothing
that they depend on has changed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from grader.author.candidates import CandidateKind, candidates
from grader.author.findings import findings
from grader.author.fingerprint_writer import KeptAnswers, diagnosed, fingerprints_of
from grader.author.gates import gates_of
from grader.author.probe_sizes import related_sizes
from grader.author.running import ByReference, CandidateOutcome, run, run_these, several
from grader.course import MANIFEST, Course, Problem
from grader.diagnose.fingerprints import Fingerprints


@dataclass(frozen=True)
class Audit:
    """The outcomes and the findings of an audit.

    Attributes:
        outcomes: the outcome of each candidate.
        findings: a sentence for each problem to fix.
        asked: how many variants and mistakes were probed, as their answers were not kept.
        by_claims: the share of points that rest on claims alone, by the problem's id.
    """

    outcomes: list[CandidateOutcome]
    findings: list[str]
    asked: int
    by_claims: dict[str, float]

    def of(self, kind: CandidateKind, problem: Problem | None = None) -> list[CandidateOutcome]:
        """Return the outcomes of one kind, of one problem or of all."""
        return [
            o
            for o in self.outcomes
            if o.candidate.kind is kind and problem in (None, o.candidate.problem)
        ]

    def summary(self) -> str:
        """Return the summary line."""
        mistakes = self.of(CandidateKind.MISTAKE)
        right = self.of(CandidateKind.SOLUTION) + self.of(CandidateKind.VARIANT)
        caught, named = sum(bool(m.caught_by) for m in mistakes), sum(m.named for m in mistakes)
        visibly, failed = (
            sum(m.caught_visibly for m in mistakes),
            sum(not r.result.passed for r in right),
        )
        return (
            f"caught {caught} of {len(mistakes)} (by visible tests alone {visibly}), "
            f"named {named} of {len(mistakes)}, wrongly failed {failed} of {len(right)}"
        )


def run_audit(
    course: Course,
    problems: list[Problem],
    jobs: int,
    *,
    write_fingerprints: bool = False,
    all_tests: bool = False,
    on_outcome: Callable[[CandidateOutcome], None] = lambda outcome: None,
) -> Audit:
    """Run every candidate and collect the findings.

    Args:
        course: the course with solutions, variants and mistakes.
        problems: the problems to audit.
        jobs: how many candidates to run at the same time.
        write_fingerprints: whether to rewrite `fingerprints.json` before it is judged.
        all_tests: whether mistakes run through all tests even when their weight is settled.
        on_outcome: called as each candidate is done.

    Raises:
        CourseError: a `fingerprints.json` is damaged and `write_fingerprints` is false.
    """
    todo = list(candidates(course, problems))
    compared = (CandidateKind.VARIANT, CandidateKind.MISTAKE)  # with the solution; in this order
    first = [candidate for candidate in todo if candidate.kind not in compared]
    others = [candidate for kind in compared for candidate in todo if candidate.kind is kind]
    outcomes: list[CandidateOutcome] = []
    with several(jobs) as each:
        for outcome in each(partial(run, root=course.root), first):
            outcomes.append(outcome)
            on_outcome(outcome)
        solutions = {p: _solution(outcomes, p) for p in problems}
        kept = {
            p: KeptAnswers(p, solution.answers, anew=write_fingerprints)
            for p, solution in solutions.items()
        }
        by_reference = {p: _by_reference(solution) for p, solution in solutions.items()}
        run_other = partial(run, root=course.root, all_tests=all_tests)
        answers = [kept[other.problem].answers(other) for other in others]
        for outcome in each(
            run_other,
            others,
            answers,
            [kept[other.problem].caught_by(other) for other in others],
            [by_reference[other.problem] for other in others],
        ):
            outcomes.append(outcome)
            on_outcome(outcome)
        for problem in problems:
            _run_rare_tests(course, _of(outcomes, problem), each, jobs)
        gates = [*each(partial(gates_of, root=course.root), problems)]
    found = [finding for each_gates in gates for finding in each_gates.findings]
    by_claims = {p.id: each_gates.by_claims for p, each_gates in zip(problems, gates, strict=True)}
    for problem in problems:
        of_problem = _of(outcomes, problem)
        fresh = fingerprints_of(problem, of_problem, kept[problem])
        if write_fingerprints:
            fresh.save(problem.fingerprints)
        known = Fingerprints.load(problem.fingerprints)
        named = [diagnosed(outcome, known) for outcome in of_problem]
        found += findings(problem, named, known, fresh)
        found += _unknown_functions(course, problem)
        found += related_sizes(course, problem)
        if not course.salt(problem).is_file():
            found.append(
                f"{problem.id}: {course.salt(problem)} is missing, so student code can compute "
                "the random numbers of its tests; write 64 random hexadecimal digits into it"
            )
    asked = sum(
        answer is None and other.problem.probe_file.is_file()
        for other, answer in zip(others, answers, strict=True)
    )
    return Audit(outcomes, found, asked, by_claims)


def _of(outcomes: list[CandidateOutcome], problem: Problem) -> list[CandidateOutcome]:
    return [outcome for outcome in outcomes if outcome.candidate.problem == problem]


def _solution(outcomes: list[CandidateOutcome], problem: Problem) -> CandidateOutcome:
    return next(o for o in _of(outcomes, problem) if o.candidate.kind is CandidateKind.SOLUTION)


def _by_reference(solution: CandidateOutcome) -> ByReference:
    return ByReference({t.id: t.seconds for t in solution.result.tests}, solution.asked)


def _unknown_functions(course: Course, problem: Problem) -> Iterator[str]:
    """Yield a finding for each `forbidden_in` of a function or class that does not exist."""
    reference = course.solution(problem).read_text(encoding="utf-8")
    for name in problem.entry.forbidden_in:
        if not re.search(rf"^(def|class) {name}\b", reference, re.MULTILINE):
            yield f"{MANIFEST}: {problem.id} has forbidden_in for '{name}', which does not exist"


def _run_rare_tests(
    course: Course, outcomes: list[CandidateOutcome], each: Callable[..., Iterator[Any]], jobs: int
) -> None:
    """Run the tests that have caught nothing, until each has caught a mistake.

    A mistake stops at the test that catches it, so some tests may not have run.

    Args:
        course: the course with the tests.
        outcomes: the outcomes of one problem; results are added to them.
        each: a map function that runs several candidates at the same time.
        jobs: the number of candidates to run at the same time.
    """
    (solution,) = (o for o in outcomes if o.candidate.kind is CandidateKind.SOLUTION)
    rare = dict.fromkeys(test.name for test in solution.result.tests)
    for outcome in outcomes:
        if outcome.candidate.kind is CandidateKind.MISTAKE:
            for test in outcome.caught_by:
                rare.pop(test.name, None)
    stopped = [outcome for outcome in outcomes if not outcome.is_whole]
    run_rare = partial(run_these, root=course.root)
    while rare and stopped:
        asked = {names for id, names in solution.asked.items() if id.partition("[")[0] in rare}
        stopped = _in_turns(stopped, asked, solution.asked)
        some, stopped = stopped[: 2 * jobs], stopped[2 * jobs :]
        todo = [outcome.candidate for outcome in some]
        for outcome, tests in zip(
            some, each(run_rare, todo, [tuple(rare)] * len(some)), strict=True
        ):
            before = {test.id for test in outcome.result.tests}
            outcome.result.tests.extend(test for test in tests if test.id not in before)
            for test in outcome.caught_by:
                rare.pop(test.name, None)


def _in_turns(
    mistakes: list[CandidateOutcome],
    asked: set[frozenset[str]],
    asked_by: Mapping[str, frozenset[str]],
) -> list[CandidateOutcome]:
    """Return mistakes in the order to try: one for each set of names, then the second of each set,
    and so on.

    A test is more likely to catch a mistake in code that it uses.

    Args:
        mistakes: the outcomes of mistakes, with the tests that caught them.
        asked: the names in the student's module that each test without a catch uses.
        asked_by: the names that a test uses, by its id.
    """
    turns: Counter[frozenset[str]] = Counter()
    turn_of = {}
    for mistake in mistakes:
        names = {asked_by.get(test.id, frozenset()) for test in mistake.caught_by} & asked
        turns.update(names)
        turn_of[mistake.candidate] = min((turns[each] for each in names), default=math.inf)
    return sorted(mistakes, key=lambda mistake: turn_of[mistake.candidate])
