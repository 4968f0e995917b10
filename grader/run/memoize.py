"""Remembers what slow definitions gave, for tests that ask them the same again.

The definition in plain Python is slow, and each file that is tested is compared with it on the same
inputs: where many files are tested in one process, it need be worked out only once.
"""

from __future__ import annotations

import functools
import hashlib
import marshal
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numpy
import torch
from torch import Tensor

from grader.code.tensors import Array

P = ParamSpec("P")
R = TypeVar("R")

_MOST_BYTES = 1 << 25
"""What is remembered may take so much; beyond that the oldest is forgotten."""

_BESIDE = 500
"""Bytes that an answer takes beside its numbers, about."""


class _Memoized:
    """What functions gave for which arguments, as long as there is room."""

    def __init__(self) -> None:
        self._answers: dict[Any, tuple[Any, int]] = {}
        self._bytes = 0

    def get(self, key: Any) -> Any:
        """Return a copy of what was kept, or None."""
        return _copied(self._answers[key][0]) if key in self._answers else None

    def keep(self, key: Any, answer: Any) -> None:
        """Keep a copy, and forget what is oldest where there is no room."""
        size = _BESIDE + sum(each.nbytes for each in _tensors(answer))
        if size > _MOST_BYTES // 8:
            return
        self._answers[key] = _copied(answer), size
        self._bytes += size
        while self._bytes > _MOST_BYTES:
            _, freed = self._answers.pop(next(iter(self._answers)))
            self._bytes -= freed


_memory = _Memoized()


def memoized(function: Callable[P, R]) -> Callable[P, R]:
    """Have a function give again what it gave for equal arguments.

    Args:
        function: its answer hangs on its arguments alone, and is a tensor, a number, or a tuple of
            such. Its arguments are numbers, texts, tensors, lists and dictionaries of them, and
            functions of a module; for others it is called each time.
    """

    @functools.wraps(function)
    def answer(*arguments: P.args, **named: P.kwargs) -> R:
        functions: list[Any] = [function]
        try:
            plain = marshal.dumps(_plain((arguments, named), functions), 2)
        except (TypeError, ValueError, RuntimeError):  # it can't be told what equals this
            return function(*arguments, **named)
        key = *functions, hashlib.blake2b(plain, digest_size=16).digest()
        known: R | None = _memory.get(key)
        if known is None:
            known = function(*arguments, **named)
            _memory.keep(key, known)
        return known

    return answer


def _plain(value: Any, functions: list[Any]) -> Any:
    """Return what equals it is told by: values that `marshal` writes; functions are put aside."""
    match value:
        case Tensor():
            entries = value.detach().numpy().tobytes()
            return "tensor", str(value.dtype), tuple(value.shape), entries
        case numpy.ndarray():
            return "array", str(value.dtype), value.shape, value.tobytes()
        case torch.dtype():
            return "dtype", str(value)
        case FunctionType() if "<locals>" not in value.__qualname__:
            functions.append(value)
            return "function", len(functions)
        case Mapping():
            return [(name, _plain(each, functions)) for name, each in value.items()]
        case tuple():
            return tuple(_plain(each, functions) for each in value)
    return value


def _tensors(answer: Any) -> list[Tensor | Array]:
    return [each for each in _parts(answer) if isinstance(each, Tensor | numpy.ndarray)]


def _parts(answer: Any) -> tuple[Any, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def _copied(answer: Any) -> Any:
    if isinstance(answer, tuple):
        return tuple(map(_copied, answer))
    if isinstance(answer, numpy.ndarray):
        return answer.copy()
    return answer.clone() if isinstance(answer, Tensor) else answer
