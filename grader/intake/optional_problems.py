"""Optional problems are for whoever likes to: who left one out is not graded in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from grader.course import Problem
from grader.intake.handed_in import Submission


def without_skipped(submission: Submission, optional: Iterable[Problem]) -> Submission:
    """Return a submission without the optional problems that were left out, or are the stub.

    Where something else was handed in for one problem alone, that it was not found is among the
    notes.

    Args:
        submission: as it was read.
        optional: the problems of the course that are optional.
    """
    skipped = {problem.id for problem in optional if _is_skipped(submission, problem)}
    files = {id: file for id, file in submission.files.items() if id not in skipped}
    alone = len(submission.files) == 1 and bool(submission.unused)
    meant = [submission.files[id] for id in submission.files if id in skipped]
    told = [f.reason for f in meant if f.source is None and alone]
    return replace(submission, files=files, notes=[*submission.notes, *told])


def _is_skipped(submission: Submission, problem: Problem) -> bool:
    file = submission.files.get(problem.id)
    if file is None:
        return False
    return not file.is_there or problem.is_stub(file.source) or _is_unreadable(submission)


def _is_unreadable(submission: Submission) -> bool:
    """Tell whether several problems can't be read for one reason, so that nobody knows of any."""
    files = [*submission.files.values()]
    alike = all(file.reason == files[0].reason for file in files)
    return len(files) > 1 and files[0].bad and alike
