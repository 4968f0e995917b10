"""Checks that tests end the same way, and mistakes get the same name, across the boundary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from grader.author.audit import Audit
from grader.author.candidates import OTHERS, Candidate
from grader.author.running import run_these
from grader.course import Course
from grader.grade.pool import grade_all
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile, Submission
from grader.result import ProblemResult, SubmissionResult, TestResult

_Ends = tuple[set[str], set[str]]
"""How a test ends with several seeds: in process, and across the boundary."""


def equivalence_findings(course: Course, found: Audit, jobs: int) -> list[str]:
    """Grade every candidate across the boundary and return what comes out otherwise there.

    What a student would be told of the mistake is compared as well as how each test ends. Code that
    draws numbers goes on with others there. So a test that ends now so and now so with other seeds
    makes no difference.

    Raises:
        InternalError: nothing can be graded here, for example because there is no sandbox.
    """
    outcomes = {_name(outcome.candidate): outcome for outcome in found.outcomes}
    candidates = {name: outcome.candidate for name, outcome in outcomes.items()}
    findings: list[str] = []
    differing: dict[str, dict[str, _Ends]] = {}
    for name, there in _graded(course, candidates, Settings(), jobs).items():
        here = outcomes[name].result
        if otherwise := _differing(here.tests, there.tests):
            differing[name] = otherwise
        # What a test has seen of a module's parts has no name. It is told there only.
        if all(there.mistakes) and here.diagnoses != there.diagnoses:
            texts = [" / ".join(p.diagnoses) or "nothing" for p in (here, there)]
            findings.append(f"{name}: told {texts[0]} in process, {texts[1]} across the boundary")
    if differing:
        _try_other_seeds(course, {name: candidates[name] for name in differing}, differing, jobs)
    for name, tests in differing.items():
        for test, (statuses, others) in tests.items():
            if len(statuses) == len(others) == 1:
                ends = f"{min(statuses)} in process, {min(others)} across the boundary"
                findings.append(f"{name}: {test} ends {ends}")
    return sorted(findings)


def _differing(here: Iterable[TestResult], there: Iterable[TestResult]) -> dict[str, _Ends]:
    """Return how tests end that end otherwise across the boundary."""
    ours, theirs = ({test.id: str(test.status) for test in tests} for tests in (here, there))
    ends = {id: (ours.get(id, "nothing"), theirs.get(id, "nothing")) for id in ours | theirs}
    return {id: ({one}, {other}) for id, (one, other) in ends.items() if one != other}


def _try_other_seeds(
    course: Course,
    candidates: Mapping[str, Candidate],
    differing: Mapping[str, dict[str, _Ends]],
    jobs: int,
) -> None:
    """Add how these tests end with other seeds."""
    for conditions in OTHERS:
        for name, there in _graded(
            course, candidates, Settings(seed=conditions.seed), jobs
        ).items():
            tests = differing[name]
            again = replace(candidates[name], conditions=conditions)
            for test in run_these(again, tests, root=course.root):
                tests[test.id][0].add(str(test.status))
            for test in there.tests:
                if test.id in tests:
                    tests[test.id][1].add(str(test.status))


def _graded(
    course: Course, candidates: Mapping[str, Candidate], settings: Settings, jobs: int
) -> dict[str, ProblemResult]:
    """Grade candidates across the boundary, and return what came of each, by its name."""
    submissions = [
        Submission(name, {each.problem.id: StudentFile(each.source)})
        for name, each in candidates.items()
    ]
    graded: dict[str, ProblemResult] = {}

    def keep(result: SubmissionResult) -> None:
        (graded[result.submission],) = result.problems

    grade_all(submissions, course, settings, jobs, keep)
    return graded


def _name(candidate: Candidate) -> str:
    return f"{candidate.problem.id}: {candidate.kind} {candidate.name}"
