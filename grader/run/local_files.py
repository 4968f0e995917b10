"""Opens students' files in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from grader.code.interrupt import DoesNotEnd, time_limit
from grader.code.loading import STUDENT_MODULE, judge_load, load_module, place
from grader.code.time_limit import NO_END_OF_FILE, TIMEOUT_SECONDS
from grader.course import SUBMISSION_FILE, Problem
from grader.errors import CannotLoad
from grader.result import Status
from grader.run.import_and_io_policy import hold


class LocalFiles:
    """Opens each problem's file once, in this process.

    Args:
        find: returns where the file to test is.
        seconds: how long a file may take to load.
    """

    def __init__(
        self,
        find: Callable[[Problem], Path] = lambda problem: problem.stub,
        seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._find = find
        self._seconds = seconds
        self._opened: dict[str, ModuleType | CannotLoad] = {}

    def __call__(self, problem: Problem, forbidden: tuple[str, ...] = ()) -> ModuleType:
        """Return the loaded module. The caller watches for forbidden functions.

        Raises:
            CannotLoad: the file isn't there or doesn't run.
        """
        hold()
        if problem.id not in self._opened:
            self._opened[problem.id] = self._load(problem)
        opened = self._opened[problem.id]
        if isinstance(opened, CannotLoad):
            raise opened.without_traceback()
        return opened

    def forget(self, problem: Problem) -> None:
        """Load the module again next time, unless loading has failed."""
        if isinstance(self._opened.get(problem.id), ModuleType):
            del self._opened[problem.id]

    def _load(self, problem: Problem) -> ModuleType | CannotLoad:
        path = self._find(problem)
        if not path.is_file():
            reason = f"There is no {SUBMISSION_FILE} in {path.parent.name}."
            return CannotLoad(Status.MISSING, reason)
        try:
            path.read_bytes()
        except OSError as error:
            reason = f"{path.name} can't be read: {error.strerror}. Who may read it?"
            return CannotLoad(Status.ERROR, reason)
        try:
            with time_limit(self._seconds):
                return load_module(path, STUDENT_MODULE + problem.id[:2])
        except KeyboardInterrupt:
            raise
        except DoesNotEnd as exception:
            return CannotLoad(Status.TIMEOUT, NO_END_OF_FILE + place(exception.__traceback__))
        except BaseException as exception:  # student code may raise SystemExit or worse
            return judge_load(exception, path)
