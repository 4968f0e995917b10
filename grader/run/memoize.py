"""Cache the results of slow reference functions.

A definition in plain Python is slow, and every tested file is compared with it on the same inputs.
A process that tests many files computes it only once.
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
"""The size of the cache; beyond it the oldest results are dropped."""

_BESIDE = 500
"""Approximate bytes of a result in addition to its numbers."""


class _Memoized:
    """A bounded cache of results by function and arguments."""

    def __init__(self) -> None:
        self._answers: dict[Any, tuple[Any, int]] = {}
        self._bytes = 0

    def get(self, key: Any) -> Any:
        """Return a copy of a cached result, or None."""
        return _copied(self._answers[key][0]) if key in self._answers else None

    def keep(self, key: Any, answer: Any) -> None:
        """Cache a copy of a result, and drop the oldest results if the cache is full."""
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
    """Cache the results of a function by its arguments.

    Args:
        function: the function. Its result depends only on its arguments and is a tensor, a number,
            or a tuple of such. Results are cached for arguments that are numbers, texts, tensors,
            functions of a module, and lists and dictionaries of them.
    """

    @functools.wraps(function)
    def answer(*arguments: P.args, **named: P.kwargs) -> R:
        functions: list[Any] = [function]
        try:
            plain = marshal.dumps(_plain((arguments, named), functions), 2)
        except (TypeError, ValueError, RuntimeError):  # these arguments can't be compared
            return function(*arguments, **named)
        key = *functions, hashlib.blake2b(plain, digest_size=16).digest()
        known: R | None = _memory.get(key)
        if known is None:
            known = function(*arguments, **named)
            _memory.keep(key, known)
        return known

    return answer


def _plain(value: Any, functions: list[Any]) -> Any:
    """Convert a value for `marshal`, as part of a key; collect functions in a list."""
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
