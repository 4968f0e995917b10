"""Compile a student's file, in this process or in a worker."""

from __future__ import annotations

import ast
import importlib.util
from types import CodeType


def compiled(source: bytes, name: str) -> tuple[ast.Module, CodeType, str]:
    """Return a file's syntax tree, compiled code and text.

    Raises:
        SyntaxError, ValueError: the source is no valid Python.
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
