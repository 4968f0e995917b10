"""Hash Python code. The hash does not depend on comments, docstrings or layout."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from functools import cache

_DIGITS = 16
"""The number of characters of each hash."""


def hash_of(*parts: str) -> str:
    """Return a short hash of these texts in this order."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_DIGITS]


@cache
def code_hash(source: bytes) -> str:
    """Return a hash of Python code. The hash is the same in every version of Python.

    If the code can't be parsed, hash its bytes.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return hashlib.sha256(source).hexdigest()[:_DIGITS]
    return hash_of(repr(_structure(tree)))


def code_hashes(sources: Iterable[bytes]) -> str:
    """Return a hash of several modules. It does not depend on their order."""
    return hash_of(*sorted(code_hash(source) for source in sources))


def _structure(value: object) -> object:
    """Return a syntax tree as nested lists, without docstrings and other string statements.

    Empty fields are omitted, because they differ between versions of Python.
    """
    if isinstance(value, ast.AST):
        fields = [
            (name, _structure(v)) for name, v in ast.iter_fields(value) if v not in (None, [])
        ]
        return [type(value).__name__, *fields]
    if isinstance(value, list):
        return [_structure(item) for item in value if not _is_text(item)]
    return repr(value)


def _is_text(statement: object) -> bool:
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
        return False
    return isinstance(statement.value.value, str)
