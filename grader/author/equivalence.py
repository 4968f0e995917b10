"""Checks that tests end the same way, and mistakes get the same name, across the boundary."""

from __future__ import annotations

from grader.author.audit import Audit
from grader.course import Course
from grader.grade.pool import grade_all
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile, Submission
from grader.result import SubmissionResult


def equivalence_findings(course: Course, found: Audit, jobs: int) -> list[str]:
    """Grade every candidate across the boundary and return what comes out otherwise there.

    What a student would be told of the mistake is compared as well as how each test ends.

    Raises:
        InternalError: nothing can be graded here, for example because there is no sandbox.
    """
    outcomes = {
        f"{o.candidate.problem.id} {o.candidate.kind} {o.candidate.name}": o for o in found.outcomes
    }
    submissions = [
        Submission(name, {o.candidate.problem.id: StudentFile(o.candidate.source)})
        for name, o in outcomes.items()
    ]
    findings: list[str] = []

    def compare(result: SubmissionResult) -> None:
        outcome = outcomes[result.submission]
        where = f"{outcome.candidate.problem.id}: {outcome.candidate.kind} {outcome.candidate.name}"
        here = {test.id: test.status for test in outcome.result.tests}
        there = {test.id: test.status for p in result.problems for test in p.tests}
        for test in here.keys() | there.keys():
            if here.get(test) != there.get(test):
                ends = f"{here.get(test)} in process, {there.get(test)} across the boundary"
                findings.append(f"{where}: {test} ends {ends}")
        (graded,) = result.problems
        # What a test has seen of a module's parts has no name. It is told there only.
        if all(graded.mistakes) and outcome.result.diagnoses != graded.diagnoses:
            texts = [" / ".join(p.diagnoses) or "nothing" for p in (outcome.result, graded)]
            findings.append(f"{where}: told {texts[0]} in process, {texts[1]} across the boundary")

    grade_all(submissions, course, Settings(), jobs, compare)
    return sorted(findings)
