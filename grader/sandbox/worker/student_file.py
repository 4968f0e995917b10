"""Runs the student's file, and notes what it tries meanwhile."""

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

from grader.code.compiled import compiled
from grader.code.forbidden import ForbiddenCall
from grader.code.graded_alone import builtins_of_student, hold_imports_by_name, refuse_input

FILE = "problem.py"
MODULE = "problem_"
"""The file and module name that the student's code sees."""

_MOST_ATTEMPTS = 5
_MOST_NAME = 100

_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
"""What `from __future__ import ...` says of all statements of a file."""


def hide_own_modules() -> None:
    """Take the grader's modules away from `import`, and all names from the main module.

    What is left of a worker's word is then not one assignment away. Who looks through frames or all
    objects still finds them; README.md says what depends on it.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == "grader"]:
        del sys.modules[name]
    main = vars(sys.modules["__main__"])
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]


def run_source(source: bytes, module: ModuleType) -> None:
    """Run a file's source as a module.

    Raises:
        Whatever it raises while it is compiled or run.
    """
    module.__file__ = FILE
    module.__dict__["__builtins__"] = builtins_of_student()
    sys.modules[MODULE] = module
    hold_imports_by_name(_runs_file)
    refuse_input()
    file, code, text = compiled(source, FILE)
    # For what reads its own source, as torch.jit.script does.
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    _run(file, code.co_flags & _FUTURE, module)


def _runs_file(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__") == MODULE


def _run(file: ast.Module, flags: int, module: ModuleType) -> None:
    """Run a file statement by statement, without those that need a forbidden function.

    To compare one's own function with torch's while the file is loaded is no offence; there is just
    nothing to compare with. What such a statement would have named is missing then, or changed, as
    the gradient of a tensor; so what needs that is left out as well.
    """
    left_out: list[ast.stmt] = []
    for statement in file.body:
        part = ast.Module([statement], [])
        code = compile(part, FILE, "exec", flags, dont_inherit=True)
        try:
            exec(code, module.__dict__)
        except Exception as error:
            if not isinstance(error, ForbiddenCall) and not _may_follow(error, left_out):
                raise
            left_out.append(statement)


def _may_follow(error: Exception, left_out: list[ast.stmt]) -> bool:
    """Return whether an error may be there because some statements were left out."""
    if isinstance(error, NameError):
        return any(error.name in _names_set(statement) for statement in left_out)
    return bool(left_out)


def _names_set(statement: ast.stmt) -> set[str]:
    nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    return {node.id for node in nodes if isinstance(node.ctx, ast.Store)}


# What a file tries while it is loaded and a sandbox stops, also where it hides that. It is found by
# Python's audit hooks, so it is this process's own word: something for an instructor to know, and
# nothing that a mark hangs on.

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
_INSTALLED = "-packages" + os.sep  # such folders may lie in Python's own


class Attempts:
    """What the student's code attempts, from now until `found`."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] | None = []
        sys.addaudithook(self._note)

    def found(self) -> list[tuple[str, str]]:
        """Return what was attempted, each as kind and name, and listen no more."""
        found, self._found = self._found or [], None
        tried = dict.fromkeys(each for each in found if each[0] != "read" or _is_refused(each[1]))
        return [(kind, name[:_MOST_NAME]) for kind, name in tried][:_MOST_ATTEMPTS]

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if self._found is None or (event != "open" and event not in _KINDS):
            return
        try:
            if len(self._found) < _MOST_FOUND and _is_students(sys._getframe(1)):
                self._found.append(_described(event, args))
        except Exception:  # never in the way of what is right
            pass


def _described(event: str, args: tuple[Any, ...]) -> tuple[str, str]:
    kind = _KINDS.get(event) or ("write" if args[2] & _WRITING else "read")
    name = args[0] if kind in _NAMED else ""
    name = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
    return kind, name.encode("utf-8", "replace").decode()


def _is_students(frame: FrameType | None) -> bool:
    """Return whether the student's code does this itself, if through Python's own library."""
    while frame is not None and _is_pythons(frame.f_code.co_filename):
        frame = frame.f_back
    name = "<frozen" if frame is None else frame.f_code.co_filename
    return not os.path.isabs(name) and not name.startswith("<frozen")  # what imports modules


def _is_pythons(file: str) -> bool:
    return file.startswith(_PYTHONS) and _INSTALLED not in file


def _is_refused(name: str) -> bool:
    try:
        os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
    except PermissionError:
        return True
    except (OSError, ValueError):
        pass  # there is none
    return False
