"""Audit the course: correct files must pass, and every mistake must fail and be named.

For every problem the audit runs the tests on the stub, the reference, the variants (`variants/`)
and the mistakes (`mistakes.edits`). Some runs are repeated with other random numbers. The run of a
mistake ends when the mistake's weight is confirmed, unless all tests are requested. The probe runs
on a variant or mistake only if `fingerprints.json` contains no valid answers for it.
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
        findings: the findings, a sentence each.
        probed: the number of variants and mistakes on which the probe ran, because
            `fingerprints.json` contained no valid answers for them.
        by_claims: for each problem id, the share of the points that are given for claims. A claim
            is a check that compares no value.
    """

    outcomes: list[CandidateOutcome]
    findings: list[str]
    probed: int
    by_claims: dict[str, float]

    def of(self, kind: CandidateKind, problem: Problem | None = None) -> list[CandidateOutcome]:
        """Return the outcomes of the candidates of one kind.

        If a problem is given, return only the outcomes of this problem's candidates.
        """
        return [
            o
            for o in self.outcomes
            if o.candidate.kind is kind and problem in (None, o.candidate.problem)
        ]

    def summary(self) -> str:
        """Return a line with the main figures.

        They are the numbers of caught mistakes, of named mistakes and of correct files that failed.
        """
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
    """Run every candidate, and return the outcomes and the findings.

    Args:
        course: the course with solutions, variants and mistakes.
        problems: the problems to audit.
        jobs: the number of candidates to run at the same time.
        write_fingerprints: whether to write a new `fingerprints.json` before checking it.
        all_tests: whether all tests are run on a mistake even after its weight is confirmed.
        on_outcome: called with the outcome of each candidate when its run ends.

    Raises:
        CourseError: a `fingerprints.json` is damaged and `write_fingerprints` is false.
    """
    todo = list(candidates(course, problems))
    # Variants and mistakes run last, because KeptAnswers needs the answers of the reference.
    compared = (CandidateKind.VARIANT, CandidateKind.MISTAKE)
    first = [candidate for candidate in todo if candidate.kind not in compared]
    others = [candidate for kind in compared for candidate in todo if candidate.kind is kind]
    outcomes: list[CandidateOutcome] = []
    with several(jobs) as each:
        for outcome in each(partial(run, root=course.root), first):
            outcomes.append(outcome)
            on_outcome(outcome)
        solutions = {p: _solution(outcomes, p) for p in problems}
        kept = {
            p: KeptAnswers(p, solution.answers, will_rewrite=write_fingerprints)
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
    all_findings = [finding for each_gates in gates for finding in each_gates.findings]
    by_claims = {p.id: each_gates.by_claims for p, each_gates in zip(problems, gates, strict=True)}
    for problem in problems:
        of_problem = _of(outcomes, problem)
        fresh = fingerprints_of(problem, of_problem, kept[problem])
        if write_fingerprints:
            fresh.save(problem.fingerprints)
        known = Fingerprints.load(problem.fingerprints)
        named = [diagnosed(outcome, known) for outcome in of_problem]
        all_findings += findings(problem, named, known, fresh)
        all_findings += _unknown_functions(course, problem)
        all_findings += related_sizes(course, problem)
        if not course.salt(problem).is_file():
            all_findings.append(
                f"{problem.id}: {course.salt(problem)} is missing, so student code can compute "
                "the random numbers of its tests; write 64 random hexadecimal digits into it"
            )
    probed = sum(
        answer is None and other.problem.probe_file.is_file()
        for other, answer in zip(others, answers, strict=True)
    )
    return Audit(outcomes, all_findings, probed, by_claims)


def _of(outcomes: list[CandidateOutcome], problem: Problem) -> list[CandidateOutcome]:
    return [outcome for outcome in outcomes if outcome.candidate.problem == problem]


def _solution(outcomes: list[CandidateOutcome], problem: Problem) -> CandidateOutcome:
    return next(o for o in _of(outcomes, problem) if o.candidate.kind is CandidateKind.SOLUTION)


def _by_reference(solution: CandidateOutcome) -> ByReference:
    return ByReference({t.id: t.seconds for t in solution.result.tests}, solution.uses)


def _unknown_functions(course: Course, problem: Problem) -> Iterator[str]:
    """Yield a finding for each key of `forbidden_in` that the reference does not define."""
    reference = course.solution(problem).read_text(encoding="utf-8")
    for name in problem.entry.forbidden_in:
        if not re.search(rf"^(def|class) {name}\b", reference, re.MULTILINE):
            yield f"{MANIFEST}: {problem.id} has forbidden_in for '{name}', which does not exist"


def _run_rare_tests(
    course: Course, outcomes: list[CandidateOutcome], each: Callable[..., Iterator[Any]], jobs: int
) -> None:
    """Run the tests that have caught no mistake yet on more mistakes.

    A test no longer runs after it has caught a mistake. This step is necessary because the runs of
    most mistakes end early, often before such a test.

    Args:
        course: the course with the tests.
        outcomes: the outcomes of one problem's candidates. New test results are added to them.
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
        used = {names for id, names in solution.uses.items() if id.partition("[")[0] in rare}
        stopped = _likely_caught_first(stopped, used, solution.uses)
        some, stopped = stopped[: 2 * jobs], stopped[2 * jobs :]
        todo = [outcome.candidate for outcome in some]
        for outcome, tests in zip(
            some, each(run_rare, todo, [tuple(rare)] * len(some)), strict=True
        ):
            before = {test.id for test in outcome.result.tests}
            outcome.result.tests.extend(test for test in tests if test.id not in before)
            for test in outcome.caught_by:
                rare.pop(test.name, None)


def _likely_caught_first(
    mistakes: list[CandidateOutcome],
    used: set[frozenset[str]],
    uses: Mapping[str, frozenset[str]],
) -> list[CandidateOutcome]:
    """Sort mistakes: first those that one of the remaining tests probably catches.

    A test probably catches a mistake if another test of the same functions caught it. The sets of
    functions take turns: the result begins with one mistake for each set, followed by a second
    mistake for each set.

    Args:
        mistakes: the outcomes of mistakes, which contain the tests that caught them.
        used: the sets of functions and classes that the remaining tests use.
        uses: for each test id, the functions and classes that the test uses.
    """
    turns: Counter[frozenset[str]] = Counter()
    turn_of = {}
    for mistake in mistakes:
        names = {uses.get(test.id, frozenset()) for test in mistake.caught_by} & used
        turns.update(names)
        turn_of[mistake.candidate] = min((turns[each] for each in names), default=math.inf)
    return sorted(mistakes, key=lambda mistake: turn_of[mistake.candidate])
