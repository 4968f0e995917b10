"""Refuses what a student's file can't have where it is graded: other packages and input.

It is graded by itself, perhaps on another machine, and nobody is there to type. What holds there
holds at home, in the same words. This is a help, not a wall: `sandbox/sandbox` confines code.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FrameType
from typing import Any

_FILE = "problem.py"

_PACKAGES = sys.stdlib_module_names | {
    *("__main__", "functorch", "numpy", "torch", "typing_extensions"),
}
"""What is there wherever the course is installed. PyTorch brings two more with it."""

_ALLOWED = "Python's standard library, PyTorch and NumPy"

NO_INPUT = f"{_FILE} can't read input: nobody is there to type when it is graded."

_INPUTS = (0, "/dev/stdin", "/dev/tty", "/dev/fd/0", "/proc/self/fd/0")


def builtins_of_student() -> dict[str, Any]:
    """Return the built-in names for a student's module, whose imports are held to what is there."""
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
    """Hold `importlib.import_module`, where a student's file calls it, to the same packages.

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
    """Raise an exception as Python does where a module is not installed."""
    package = name.partition(".")[0]
    if package not in _PACKAGES:
        raise ModuleNotFoundError(
            f"{_FILE} can't import {package}: it is graded by itself. Use {_ALLOWED}, "
            f"or copy what you need into {_FILE}.",
            name=name,
        )


def is_input(path: object) -> bool:
    """Return whether a file that is opened is what somebody types."""
    return type(path) in (int, str) and path in _INPUTS


class RefusedInput:
    """Stands in for `sys.stdin`.

    Args:
        stream: what it stands in for.
        check: called before something is read; raises an exception to refuse it.
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
    """Refuse all input in this process, which runs nothing but a student's file."""
    sys.stdin = RefusedInput(sys.stdin, _no_input)
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "builtins.input" or (event == "open" and is_input(arguments[0])):
        _no_input()


def _no_input() -> None:
    raise EOFError(NO_INPUT)
