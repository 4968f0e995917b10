"""Grade the text of a single file in a sandbox."""

from __future__ import annotations

import textwrap

from grader.course import Course, Problem
from grader.grade.settings import Settings
from grader.grade.submission import Grader
from grader.intake.handed_in import StudentFile, Submission
from grader.result import ProblemResult
from grader.sandbox.sandbox import Sandbox


class SourceGrader:
    """Grades the text of a file for one problem.

    Args:
        course: the course.
        sandbox: the sandbox that runs each file.
        problem: the problem to grade. The default is the first problem of the course.
    """

    def __init__(self, course: Course, sandbox: Sandbox, problem: Problem | None = None) -> None:
        self._id = (problem or course.problems()[0]).id
        self._grader = Grader(course, Settings(), sandbox, [self._id])

    def __call__(self, source: str) -> ProblemResult:
        """Grade the text of a file."""
        file = StudentFile(textwrap.dedent(source).encode())
        return self._grader.grade(Submission("ada", {self._id: file})).problems[0]
