"""Build a submission's result from the results of its problems or from an error of the grader."""

from __future__ import annotations

from dataclasses import replace

from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.result import Isolation, ProblemResult, Status, SubmissionResult, TestResult


def assemble(
    submission: Submission,
    settings: Settings,
    grader_sha256: str,
    problems: list[ProblemResult],
) -> SubmissionResult:
    """Combine the results of a submission's problems, from this run and earlier runs.

    The combined result has the weakest level of isolation of this run and all problems. The
    submission time of each problem is the time of its file.
    """
    problems = [_with_times(problem, submission) for problem in problems]
    levels = {settings.isolation, *(p.provenance.get("isolation") for p in problems)}
    return SubmissionResult(
        submission.name,
        settings.seed,
        Isolation.PROCESS if Isolation.PROCESS in levels else Isolation.SANDBOX,
        grader_sha256,
        problems,
        notes=submission.notes,
        members=submission.members,
        late=submission.late or any(problem.late for problem in problems),
        identity=submission.identity,
        full_name=submission.full_name,
    )


def _with_times(problem: ProblemResult, submission: Submission) -> ProblemResult:
    file = submission.files.get(problem.id)
    return replace(problem, late=file.late, handed_in=file.handed_in) if file else problem


def as_result(submission: Submission, answer: SubmissionResult | str) -> SubmissionResult:
    """Return the result of a submission. An error gives a result with the status `internal`.

    Args:
        submission: the submission.
        answer: the result, or a sentence about an error of the grader.
    """
    if isinstance(answer, SubmissionResult):
        return answer
    failed = internal_result(submission.name, answer)
    failed.members, failed.late = submission.members, submission.late
    failed.identity, failed.full_name = submission.identity, submission.full_name
    return failed


def internal_result(name: str, reason: str) -> SubmissionResult:
    """Return the result of a submission that was not graded, because the grader failed."""
    test = TestResult("grader", "The grader failed", True, 0.0, Status.INTERNAL, reason)
    return SubmissionResult(name, 0, None, "", [ProblemResult("", tests=[test])], [reason])
