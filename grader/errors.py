"""Whose fault it is: the student's, the instructor's input, the course's, or the grader's own.

The kinds are never mixed. What a student's file does wrong becomes a status and a sentence; what
anybody else does wrong ends the run, and gives nobody a zero.
"""

from __future__ import annotations

from typing import Any

from grader.result import Status

# The student's


TIME_USED_UP = "Not run: the time for this submission is used up."
"""What is said of a test for which a submission had no time left."""


class Mismatch(AssertionError):  # noqa: N818  (a finding, not an error of the program)
    """An answer is not what it should be. The text is for the student.

    Attributes:
        shown: what the answer shows of the mistake, where something looked at it.
    """

    def __init__(self, text: str, shown: Any = None) -> None:
        super().__init__(text)
        self.shown = shown


class CannotLoad(Exception):  # noqa: N818  (it is a verdict on its way up)
    """The student's file can't be used, so none of the problem's tests can run.

    Args:
        status: what the tests get.
        message: what the student reads.
    """

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status

    def without_traceback(self) -> CannotLoad:
        """Return the same to be raised once more: a traceback grows each time it is raised."""
        return self.with_traceback(None)


# The instructor's input


class SubmissionError(Exception):
    """A path that was given can't be graded; the text says why and what to give instead."""


class InUse(Exception):  # noqa: N818  (it is what the instructor reads)
    """Another run is writing to the same folder."""


class CannotWrite(OSError):  # noqa: N818  (it is what the instructor reads)
    """A path that was given, or something in it, can't be written. `filename` says which.

    The text is the system's; `grader.files.os_error_sentence` makes a sentence of it.
    """


# The course's and the grader's own


class CourseError(Exception):
    """The course's own files are not as they should be; the text says which and how."""


class UsageError(CourseError):
    """Something was asked for that isn't to be had; the course itself is well."""


class InternalError(Exception):
    """The grader itself can't do its work. Never a student's error.

    Raised by the sandbox when student code can't be run, and by grading when the course's own
    solutions don't pass its tests here or the machines that grade are lost. In a test it is a
    verdict, the status `internal`; anywhere else it ends the run and no mark is given.
    """
