"""Run the student's file, and record forbidden actions that the file tries."""

from __future__ import annotations
import __future__

import ast
import functools
import linecache
import operator
import os
import sys
import sysconfig
from types import FrameType, ModuleType
from typing import Any

from grader.code.forbidden import ForbiddenCall
from grader.code.graded_alone import (
    builtins_of_student,
    compiled,
    refuse_input,
    restrict_import_module,
)

FILE = "problem.py"
MODULE = "problem_"
"""The value of `__name__` in the student's file."""

_MOST_ATTEMPTS = 5
_MOST_NAME = 100

_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
"""The compiler flags of `from __future__ import ...`, which apply to a whole file."""


def hide_own_modules() -> None:
    """Remove the grader's modules from `sys.modules`, and all names from the main module.

    This makes it harder to fake a worker's claims. Code that searches frames or all objects still
    finds the modules; README.md explains the consequences. A server calls this function before it
    forks, because a call in a fork would copy many pages of memory.
    """
    if "grader" not in sys.modules:
        return
    for name in [name for name in sys.modules if name.partition(".")[0] == "grader"]:
        del sys.modules[name]
    main = vars(sys.modules["__main__"])
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]


def run_source(source: bytes, module: ModuleType) -> None:
    """Run a file's source as a module.

    Raises:
        BaseException: any exception of compiling or running the source.
    """
    module.__file__ = FILE
    module.__dict__["__builtins__"] = builtins_of_student()
    sys.modules[MODULE] = module
    restrict_import_module(_runs_file)
    refuse_input()
    file, code, text = compiled(source, FILE)
    # Some code, such as torch.jit.script, reads the source of functions.
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    _run(file, code.co_flags & _FUTURE, module)


def _runs_file(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == MODULE


def _run(file: ast.Module, flags: int, module: ModuleType) -> None:
    """Run a file statement by statement, and skip statements that need a forbidden function.

    For example, a statement that compares the student's function with torch's function is skipped
    if torch's function was removed. A skipped statement sets no names and has no side effects, such
    as the gradient of a tensor. So later statements that need them are skipped as well.
    """
    skipped: list[ast.stmt] = []
    for statement in file.body:
        part = ast.Module([statement], [])
        code = compile(part, FILE, "exec", flags, dont_inherit=True)
        try:
            exec(code, module.__dict__)
        except Exception as error:
            if not isinstance(error, ForbiddenCall) and not _may_follow(error, skipped):
                raise
            skipped.append(statement)


def _may_follow(error: Exception, skipped: list[ast.stmt]) -> bool:
    """Return whether an error can be a consequence of skipped statements."""
    if isinstance(error, NameError):
        return any(error.name in _names_set(statement) for statement in skipped)
    return bool(skipped)


def _names_set(statement: ast.stmt) -> set[str]:
    nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return {node.id for node in nodes if isinstance(node.ctx, ast.Store)}


# While a file is loaded, Python's audit hooks record the actions that a sandbox refuses, even if
# the file catches the exception. The recorded actions are a claim of the worker: they inform the
# instructor, and no mark depends on them.

_KINDS = {
    "os.remove": "write",
    "os.rename": "write",
    "os.mkdir": "write",
    "os.link": "write",
    "os.symlink": "write",
    "os.chmod": "write",
    "os.truncate": "write",
    "os.listdir": "read",
    "os.scandir": "read",
    "os.system": "start",
    "os.exec": "start",
    "os.posix_spawn": "start",
    "subprocess.Popen": "start",
    "os.fork": "fork",
    "os.forkpty": "fork",
    "os.kill": "signal",
    "os.killpg": "signal",
    "socket.__new__": "connect",
}
_NAMED = {"read", "write", "start"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MOST_FOUND = 1000

_PYTHONS = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED = "-packages" + os.sep  # site-packages may be inside Python's folder


class Attempts:
    """Records the actions that student code tries, until `found` is called."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] | None = []
        sys.addaudithook(self._note)

    def found(self) -> list[tuple[str, str]]:
        """Return the kind and name of each forbidden action, and stop recording."""
        attempts, self._found = self._found or [], None
        tried = dict.fromkeys(
            each for each in attempts if each[0] != "read" or _is_refused(each[1])
        )
        return [(kind, name[:_MOST_NAME]) for kind, name in tried][:_MOST_ATTEMPTS]

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if self._found is None or (event != "open" and event not in _KINDS):
            return
        try:
            if len(self._found) < _MOST_FOUND and _is_students(sys._getframe(1)):
                self._found.append(_described(event, args))
        except Exception:  # recording must never break student code
            pass


def _described(event: str, args: tuple[Any, ...]) -> tuple[str, str]:
    kind = _KINDS.get(event) or ("write" if args[2] & _WRITING else "read")
    name = args[0] if kind in _NAMED else ""
    name = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
    return kind, name.encode("utf-8", "replace").decode()


def _is_students(frame: FrameType | None) -> bool:
    """Return whether student code is the caller, directly or through Python's standard library."""
    while frame is not None and _is_pythons(frame.f_code.co_filename):
        frame = frame.f_back
    name = "<frozen" if frame is None else frame.f_code.co_filename
    return not os.path.isabs(name) and not name.startswith("<frozen")  # the import system


def _is_pythons(file: str) -> bool:
    return file.startswith(_PYTHONS) and _INSTALLED not in file


def _is_refused(name: str) -> bool:
    try:
        os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
    except PermissionError:
        return True
    except (OSError, ValueError):
        pass  # the file doesn't exist
    return False
