"""Compiles a student's file, in this process or in a worker."""

from __future__ import annotations

import ast
import importlib.util
from types import CodeType


def compiled(source: bytes, name: str) -> tuple[ast.Module, CodeType, str]:
    """Return a file's statements, what they are compiled to, and its text.

    Raises:
        SyntaxError, ValueError: it can't be read as Python.
    """
    try:
        try:
            tree = ast.parse(source, name)
        except MemoryError:  # so Python's parser tells that it can't go deeper
            raise RecursionError from None
        code = compile(tree, name, "exec")
    except RecursionError:
        raise SyntaxError("it is nested too deeply") from None
    return tree, code, importlib.util.decode_source(source)  # compile doesn't look into comments
