"""Find the operands of an error: shapes of the line's tensors, and numbers among the arguments."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FrameType

import numpy
from torch import Tensor

from grader.code.tensors import Array, dtype_name

_MOST = 4
_LONGEST_NAME = 40
_LONGEST_FORM = 200

_VALUES = (Tensor, numpy.ndarray)

Operands = dict[str, str]
"""Shapes and dtypes of tensors, such as "(2, 3, 5) float64", and numbers, by name."""

_LARGEST = 1e9


def operands_of(frame: FrameType, line: str) -> Operands:
    """Return at most four tensors that a line names, then the numeric arguments of its function.

    Only names and attributes such as `self.mask` are looked up in the frame's variables. Nothing is
    called, so no student code runs.

    Args:
        frame: the frame in which the line ran.
        line: its text, which may be part of a longer statement.
    """
    found: Operands = {}
    for name in _names(line):
        value = _look_up(name, frame.f_locals)
        if isinstance(value, _VALUES) and issubclass(type(value), _VALUES):
            with suppress(Exception):  # a nested tensor has no shape
                text = form(value)
                if len(text) <= _LONGEST_FORM:
                    found.setdefault(name, text)
        if len(found) == _MOST:
            break
    return found | _numbers(frame)


def _numbers(frame: FrameType) -> Operands:
    """Return the first arguments of a function that are Python numbers."""
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    values = ((name, frame.f_locals.get(name)) for name in names if len(name) <= _LONGEST_NAME)
    numbers = [
        (name, repr(value))
        for name, value in values
        if isinstance(value, int | float) and type(value) is not bool and _is_small(value)
    ]
    return dict(numbers[:_MOST])


def _is_small(number: float) -> bool:
    return type(number) in (int, float) and abs(number) < _LARGEST


def form(tensor: Tensor | Array) -> str:
    """Return a tensor's or an array's shape and dtype, such as "(2, 3, 5) float64"."""
    return f"{tuple(map(int, tensor.shape))} {dtype_name(tensor)}"


@functools.lru_cache(maxsize=64)
def _names(line: str) -> tuple[str, ...]:
    """Return the names in a line, in order; cached, as the same line often fails in many tests."""
    return tuple(_found_names(line.strip()))


def _found_names(line: str) -> Iterator[str]:
    tree = _parsed(line)
    nodes = [] if tree is None else list(ast.walk(tree))
    places = [n for n in nodes if isinstance(n, ast.Name | ast.Attribute)]
    changed = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    for node in sorted(places, key=lambda n: (n.lineno, n.col_offset)):
        if not isinstance(node.ctx, ast.Load) and id(node) not in changed:
            continue
        name = ast.unparse(node)
        if len(name) <= _LONGEST_NAME and all(part.isidentifier() for part in name.split(".")):
            yield name


def _parsed(line: str) -> ast.Module | None:
    """Parse a line, even if it opens a block or is part of a statement."""
    for text in (line, f"{line}\n    pass", line.rstrip(","), line.strip("()[],")):
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _look_up(name: str, values: Mapping[str, object]) -> object:
    first, *rest = name.split(".")
    value = values.get(first)
    for part in rest:
        value = _member(value, part)
    return value


def _member(value: object, name: str) -> object:
    """Return an attribute without running a property: a module's tensors, or a plain attribute."""
    try:
        members = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    for kept in (members, members.get("_parameters"), members.get("_buffers")):
        if type(kept) is dict and name in kept:
            return kept[name]
    modules = members.get("_modules")
    return modules.get(name) if type(modules) is dict else None
