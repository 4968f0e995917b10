"""Part two of the course is nobody's duty: who left a problem of it out is not graded in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from grader.course import Problem
from grader.intake.handed_in import StudentFile, Submission
from grader.result import Part


def without_skipped(submission: Submission, problems: Iterable[Problem]) -> Submission:
    """Return a submission without the problems of part two that were left out, or are the stub.

    A file whose name was nearly right was meant to be graded: that is told among the notes.

    Args:
        submission: as it was read.
        problems: those of the course.
    """
    of_two = [problem for problem in problems if problem.part is Part.TWO]
    skipped = {problem.id for problem in of_two if _is_skipped(submission, problem)}
    files = {id: file for id, file in submission.files.items() if id not in skipped}
    nearly = [file.reason for id, file in submission.files.items() if id in skipped and file.nearly]
    return replace(submission, files=files, notes=[*submission.notes, *nearly])


def _is_skipped(submission: Submission, problem: Problem) -> bool:
    file = submission.files.get(problem.id)
    if file is None:
        return False
    return not file.is_there or _is_stub(file, problem) or _is_unreadable(submission)


def _is_unreadable(submission: Submission) -> bool:
    """Tell whether all of a submission can't be read, so that nobody knows what there is."""
    files = [*submission.files.values()]
    return files[0].bad and all(file.reason == files[0].reason for file in files)


def _is_stub(file: StudentFile, problem: Problem) -> bool:
    """Tell whether a file is the stub as it is handed out, however its lines end."""
    if file.source is None or not problem.original.is_file():
        return False
    return file.source.splitlines() == problem.original.read_bytes().splitlines()
