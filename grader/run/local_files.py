"""Load students' files in this process, and refuse actions that grading refuses."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType

from grader.code.forbidden import without_compiler
from grader.code.graded_alone import NO_INPUT, RefusedInput, is_input, restrict_import_module
from grader.code.loading import STUDENT_MODULE, is_students, judge_load, load_module, location
from grader.code.time_limit import NO_END_OF_FILE, TIMEOUT_SECONDS, DoesNotEnd, time_limit
from grader.course import SUBMISSION_FILE, Problem
from grader.errors import CannotLoad
from grader.result import Status


class LocalFiles:
    """Loads each problem's file once, in this process.

    Args:
        find: returns the path of a problem's file.
        seconds: the time limit for loading a file.
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
        """Return the loaded module. `forbidden` is ignored: the caller detects forbidden calls.

        Raises:
            CannotLoad: the file doesn't exist, or loading it failed.
        """
        restrict()
        if problem.id not in self._opened:
            self._opened[problem.id] = self._load(problem)
        opened = self._opened[problem.id]
        if isinstance(opened, CannotLoad):
            raise opened.without_traceback()
        return opened

    def forget(self, problem: Problem) -> None:
        """Forget the module, so that the next call loads the file again.

        A file that could not be loaded is not loaded again.
        """
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
            reason = f"{path.name} can't be read: {error.strerror}. Check the file's permissions."
            return CannotLoad(Status.ERROR, reason)
        try:
            with time_limit(self._seconds):
                return load_module(path, STUDENT_MODULE + problem.id[:2])
        except KeyboardInterrupt:
            raise
        except DoesNotEnd as exception:
            return CannotLoad(Status.TIMEOUT, NO_END_OF_FILE + location(exception.__traceback__))
        except BaseException as exception:  # student code may raise SystemExit or worse
            return judge_load(exception, path)


_REFUSED = {
    "socket.__new__": "the network",
    "socket.getaddrinfo": "the network",
    "socket.gethostbyname": "the network",
    "subprocess.Popen": "other programs",
    "os.exec": "other programs",
    "os.fork": "other programs",
    "os.posix_spawn": "other programs",
    "os.system": "other programs",
}
"""Maps the audit event of each refused action to the resource that the action uses."""

_CHANGES = frozenset({"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"})

_DEVICES = ("/dev/", "/proc/", "/sys/", "/etc/")
_DEBUGGERS = frozenset({"bdb", "code", "debugpy", "ipdb", "IPython", "pdb", "pudb", "pydevd"})
_IMPORT = "importlib._bootstrap"
_ALONE = "it is graded without files, network, threads and other programs"


class NotWhenGraded(PermissionError):  # noqa: N818  (students read the name)
    """A student's file tried an action that grading refuses."""


def restrict() -> None:
    """From now on, refuse the same actions of student code that grading refuses."""
    _restrict()
    if sys.stdin is not None and not isinstance(sys.stdin, RefusedInput):  # pytest replaces it
        sys.stdin = RefusedInput(sys.stdin, _refuse_input)


@cache
def _restrict() -> None:
    without_compiler()
    _pythons_folders()
    restrict_import_module(is_students)
    sys.addaudithook(_check)
    _restrict_threads()


def _check(event: str, arguments: tuple[object, ...]) -> None:
    """Raise NotWhenGraded if a student's file tries a refused action."""
    if event == "open":
        _check_file(*arguments)
    elif event in _CHANGES:
        _check_file(arguments[0], "w", 0)
    elif event in _REFUSED:
        _refuse(_REFUSED[event])
    elif event == "builtins.input":
        _refuse_input()


def _refuse_input() -> None:
    student, importing = _student_frame()
    if student is not None and not importing:
        raise EOFError(NO_INPUT)


def _restrict_threads() -> None:
    """Make `Thread.start` refuse threads of student code.

    An audit hook is not enough: some versions of Python raise no event for a new thread.
    """
    start = threading.Thread.start

    def start_unless_students(thread: threading.Thread) -> None:
        _refuse("threads")
        start(thread)

    setattr(threading.Thread, start.__name__, start_unless_students)


def _refuse(means: str) -> None:
    student, importing = _student_frame()
    if student is not None and not importing:
        raise NotWhenGraded(f"{SUBMISSION_FILE} can't use {means}: {_ALONE}.")


def _check_file(path: object, mode: object, flags: object) -> None:
    if is_input(path):
        _refuse_input()
    if not isinstance(path, str | bytes | os.PathLike):  # a descriptor: the file is already open
        return
    name, writes = os.fsdecode(path), _writes(mode, flags)
    if name == os.devnull or (not writes and (name.startswith(_DEVICES) or _is_pythons(name))):
        return
    student, importing = _student_frame()
    if student is None or (not writes and name == student.f_code.co_filename):
        return
    if not importing:
        raise NotWhenGraded(f"{SUBMISSION_FILE} can't open {name}: {_ALONE}.")
    if not writes and name.endswith(".py"):
        raise NotWhenGraded(_cant_import("/".join(Path(name).parts[-2:])))


def _writes(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return not {*"wax+"}.isdisjoint(mode)
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _student_frame() -> tuple[FrameType | None, bool]:
    """Return the innermost frame of student code, and whether this frame is importing a module.

    Return None instead of a frame if there is no student code, if a package is importing a module,
    or if a debugger is running.
    """
    importing = False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_students(frame):
        name = str(frame.f_globals.get("__name__", ""))
        package = name.partition(".")[0]
        if package in _DEBUGGERS or (importing and package != "importlib"):
            return None, importing
        importing |= name.startswith(_IMPORT)
        frame = frame.f_back
    return frame, importing


def _is_pythons(path: str) -> bool:
    """Return whether a file belongs to Python or to an installed package."""
    resolved = Path(path).resolve()
    return any(resolved.is_relative_to(folder) for folder in _pythons_folders())


@cache
def _pythons_folders() -> tuple[Path, ...]:
    folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(path for path in sys.path if path.endswith(("site-packages", "dist-packages")))
    return tuple(Path(path).resolve() for path in folders)


def _cant_import(name: str) -> str:
    return (
        f"{SUBMISSION_FILE} can't import {name}: it is graded alone. Copy the code that you "
        f"need into {SUBMISSION_FILE}."
    )
