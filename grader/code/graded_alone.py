"""Prevent a student's file from importing unavailable packages and from reading input.

In grading, the file runs without the student's other files, and without a user at the keyboard. The
same rules and messages apply at home. They help students, but they do not protect the grader: the
sandbox does.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import CodeType, FrameType
from typing import Any

_FILE = "problem.py"

_PACKAGES = sys.stdlib_module_names | {
    *("__main__", "functorch", "numpy", "torch", "typing_extensions"),
}
"""The packages that student code may import. PyTorch installs functorch and typing_extensions."""

_ALLOWED = "Python's standard library, PyTorch and NumPy"

NO_INPUT = f"{_FILE} can't read input: in grading, no user is at the keyboard."

_INPUTS = (0, "/dev/stdin", "/dev/tty", "/dev/fd/0", "/proc/self/fd/0")


def builtins_of_student() -> dict[str, Any]:
    """Return the built-in names for a student's module. `import` is restricted."""
    return vars(builtins) | {"__import__": _import}


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    if not level:
        _check(name)
    return builtins.__import__(name, globals, locals, fromlist, level)


@cache
def restrict_import_module(is_students: Callable[[FrameType], bool]) -> None:
    """Make `importlib.import_module` refuse unavailable packages in student code.

    Args:
        is_students: returns whether a frame runs a student's code.
    """
    import_module = importlib.import_module

    def checked(name: str, package: str | None = None) -> Any:
        if is_students(sys._getframe(1)):
            _check(package or name if name.startswith(".") else name)
        return import_module(name, package)

    setattr(importlib, import_module.__name__, checked)


def _check(name: str) -> None:
    """Raise ModuleNotFoundError if the package of a module is not available in grading."""
    package = name.partition(".")[0]
    if package not in _PACKAGES:
        raise ModuleNotFoundError(
            f"{_FILE} can't import {package}: it is graded alone. Use {_ALLOWED}, "
            f"or copy what you need into {_FILE}.",
            name=name,
        )


def is_input(path: object) -> bool:
    """Return whether a path or file descriptor for `open` is the keyboard input."""
    return type(path) in (int, str) and path in _INPUTS


class RefusedInput:
    """A replacement for `sys.stdin` that can refuse to read.

    Args:
        stream: the original stream.
        check: called before each read. It raises an exception to refuse the read.
    """

    _READS = frozenset({"buffer", "detach", "fileno", "read", "readline", "readlines"})

    def __init__(self, stream: Any, check: Callable[[], None]) -> None:
        self._stream = stream
        self._check = check

    def __getattr__(self, name: str) -> Any:
        if name in self._READS:
            self._check()
        return getattr(self._stream, name)

    def __iter__(self) -> RefusedInput:
        self._check()
        return self

    def __next__(self) -> str:
        self._check()
        return str(next(self._stream))


def refuse_input() -> None:
    """Make every read of the keyboard input raise EOFError in this process."""
    sys.stdin = RefusedInput(sys.stdin, _no_input)
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "builtins.input" or (event == "open" and is_input(arguments[0])):
        _no_input()


def _no_input() -> None:
    raise EOFError(NO_INPUT)


def compiled(source: bytes, name: str) -> tuple[ast.Module, CodeType, str]:
    """Parse and compile a file. Return its syntax tree, its compiled code and its text.

    Args:
        source: the content of the file.
        name: the name of the file in tracebacks.

    Raises:
        SyntaxError, ValueError: the source is not valid Python.
    """
    try:
        try:
            tree = ast.parse(source, name)
        except MemoryError:  # raised by Python's parser if code is nested too deeply
            raise RecursionError from None
        code = compile(tree, name, "exec")
    except RecursionError:
        raise SyntaxError("it is nested too deeply") from None
    return tree, code, importlib.util.decode_source(source)  # finds invalid bytes in comments
