"""Prevent a student's file from importing other packages and from reading input.

A file is graded alone, perhaps on another machine, and without a user at the keyboard. The same
rules and messages apply at home. These rules only help students; the sandbox protects the grader.
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
"""The packages that are available on every machine. functorch and typing_extensions come with
PyTorch."""

_ALLOWED = "Python's standard library, PyTorch and NumPy"

NO_INPUT = f"{_FILE} can't read input: in grading, no user is at the keyboard."

_INPUTS = (0, "/dev/stdin", "/dev/tty", "/dev/fd/0", "/proc/self/fd/0")


def builtins_of_student() -> dict[str, Any]:
    """Return the built-in names for a student's module, with a restricted `import`."""
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
def hold_imports_by_name(is_students: Callable[[FrameType], bool]) -> None:
    """Refuse unavailable packages when a student's file calls `importlib.import_module`.

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
    """Raise ModuleNotFoundError for packages that are not available."""
    package = name.partition(".")[0]
    if package not in _PACKAGES:
        raise ModuleNotFoundError(
            f"{_FILE} can't import {package}: it is graded by itself. Use {_ALLOWED}, "
            f"or copy what you need into {_FILE}.",
            name=name,
        )


def is_input(path: object) -> bool:
    """Return whether the argument of `open` is the keyboard input."""
    return type(path) in (int, str) and path in _INPUTS


class RefusedInput:
    """A replacement for `sys.stdin` that can refuse to read.

    Args:
        stream: the original stream.
        check: called before each read; raises an exception to refuse the read.
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
    """Refuse all input in this process, which runs only a student's file."""
    sys.stdin = RefusedInput(sys.stdin, _no_input)
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "builtins.input" or (event == "open" and is_input(arguments[0])):
        _no_input()


def _no_input() -> None:
    raise EOFError(NO_INPUT)


def compiled(source: bytes, name: str) -> tuple[ast.Module, CodeType, str]:
    """Return a file's syntax tree, compiled code and text.

    Raises:
        SyntaxError, ValueError: the source is not valid Python.
    """
    try:
        try:
            tree = ast.parse(source, name)
        except MemoryError:  # from Python's parser, for deep nesting
            raise RecursionError from None
        code = compile(tree, name, "exec")
    except RecursionError:
        raise SyntaxError("it is nested too deeply") from None
    return tree, code, importlib.util.decode_source(source)  # compile ignores bytes in comments
