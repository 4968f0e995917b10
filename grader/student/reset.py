"""Restore a problem's stub, and keep the student's file under another name."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from grader.course import Course, Problem
from grader.errors import CourseError, UsageError
from grader.files import back_up, write_whole


def require_stub(course: Course, problem: Problem) -> None:
    """Raise an error if the stub cannot be restored.

    Raises:
        UsageError: this is the course's repository, where git can restore the stub.
        CourseError: the students' copy of the course contains no copy of the stub.
    """
    if problem.kept_stub.is_file():
        return
    if course.solution(problem).is_file():
        raise UsageError(
            "In the course's repository use git to restore a stub. This deletes your file: "
            f"git checkout {shlex.quote(os.path.relpath(problem.stub))}"
        )
    raise CourseError(
        f"the stub can't be restored, because {problem.kept_stub} is missing. Get a new students' "
        f"copy of the course."
    )


def restore_stub(problem: Problem) -> Path | None:
    """Copy the student's file, and replace the file by the stub.

    Return the path of the copy, or None if there was no file.

    Raises:
        CannotWrite: the folder can't be written.
    """
    original = problem.kept_stub.read_bytes()
    kept = back_up(problem.stub) if problem.stub.is_file() else None
    write_whole(problem.stub, original)
    return kept
