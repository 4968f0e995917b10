"""Exceptions, grouped by cause: the student's file, the instructor's input, the course, the grader.

An error in a student's file becomes the status and the message of a test. Other errors usually end
the run. No student gets a zero for them.
"""

from __future__ import annotations

from typing import Any

from grader.result import Status

# Caused by the student's file

TIME_USED_UP = "Not run: the time for this submission is used up."
"""The message of a test for which a submission had no time left."""


class Mismatch(AssertionError):  # noqa: N818  (a failed check, not an error of the program)
    """A check in a test failed. The text is the message for the student.

    Attributes:
        shown: the observations about the wrong value, or None.
    """

    def __init__(self, text: str, shown: Any = None) -> None:
        super().__init__(text)
        self.shown = shown


class CannotLoad(Exception):  # noqa: N818  (it carries a verdict)
    """The student's file can't be loaded, so none of the problem's tests can run.

    Args:
        status: the status of all tests of the problem.
        message: the sentence for the student.
    """

    def __init__(self, status: Status, message: str) -> None:
        super().__init__(message)
        self.status = status

    def without_traceback(self) -> CannotLoad:
        """Remove the traceback, and return this exception.

        The traceback would grow each time the same exception is raised again.
        """
        return self.with_traceback(None)


# Caused by the instructor's input


class SubmissionError(Exception):
    """A path can't be graded. The text contains the reason and, if possible, a better path."""


class InUse(Exception):  # noqa: N818  (the instructor reads it)
    """Another run is writing to the same folder."""


class CannotWrite(OSError):  # noqa: N818  (the instructor reads it)
    """A path, or a file in it, can't be written. The attribute `filename` is the path.

    The text is the operating system's message. `grader.files.os_error_sentence` returns a sentence
    for the user.
    """


# Caused by the course or the grader


class CourseError(Exception):
    """A file of the course is invalid. The text names the file and the reason."""


class UsageError(CourseError):
    """An argument of a command is invalid, for example the name of a part that doesn't exist."""


class InternalError(Exception):
    """The grader itself failed. The student is never the cause.

    The sandbox raises it when it can't run student code. Grading raises it when the reference
    solutions don't pass the tests on this machine, or when the workers of a cluster are lost. If a
    test raises it, the test's status is `internal`. Otherwise it ends the run, and no mark is
    given.
    """
