"""Writes the same program otherwise each time: for tests that look at how it is written.

A test may tell files apart by their code, its length, or where things lie in memory, and not by
what they do. Such a test now finds something else each time, so it refuses what is right.
"""

from __future__ import annotations

import ast
import random
import string

_MOST_BESIDE = 6
_OBJECTS = 400
_LARGEST = 480
"""Bytes; Python itself keeps objects up to about this size, and others are the system's."""


def shaken(source: bytes, rng: random.Random) -> bytes:
    """Return a program that does the same, with idle statements here and there.

    Args:
        source: the program.
        rng: by which they are chosen.
    """
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for _ in range(rng.randint(0, 2)):
            function.body.insert(rng.randint(0, len(function.body) - 1), _idle(rng))
    imports = (ast.Import, ast.ImportFrom)
    first = next((n for n, each in enumerate(tree.body) if not isinstance(each, imports)), 0)
    tree.body.insert(first, _idle_objects(rng))
    for _ in range(rng.randint(0, _MOST_BESIDE)):
        tree.body.insert(rng.randint(first, len(tree.body)), _idle_function(rng))
    return ast.unparse(ast.fix_missing_locations(tree)).encode() + b"\n"


def _name(rng: random.Random) -> str:
    return "_" + "".join(rng.choices(string.ascii_lowercase, k=rng.randint(4, 12)))


def _idle(rng: random.Random) -> ast.stmt:
    return ast.parse(f"{_name(rng)} = {rng.randrange(1 << 16)}").body[0]


def _idle_function(rng: random.Random) -> ast.stmt:
    text = f"def {_name(rng)}(x={rng.randrange(99)}):\n    return x + {rng.randrange(1 << 16)}"
    return ast.parse(text).body[0]


def _idle_objects(rng: random.Random) -> ast.stmt:
    """Return what moves all that comes after it in memory."""
    sizes = rng.choices(range(_LARGEST), k=rng.randrange(_OBJECTS))
    return ast.parse(f"{_name(rng)} = [bytes(n) for n in {sizes!r}]").body[0]
