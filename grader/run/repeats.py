"""Finds tests of a student that are visible tests of the course once more.

What a visible test catches is caught already, whoever hands it in. A test is such a copy when more
than half of its code stands in the bodies of visible tests, in whatever layout and by whatever
names; or when it calls a function of its own file that is one. What can't be looked at, since it is
nested too deeply, counts as a copy.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from functools import cache

from grader.course import HIDDEN_MARKER, Problem

_SHARE = 0.5
_WITH_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def repeated(problem: Problem, tests: bytes) -> list[str]:
    """Return the names of the tests in a student's file that repeat visible ones.

    Args:
        problem: whose visible tests.
        tests: the student's file; nothing in it is found if it can't be read.
    """
    visible = problem.test_file.read_text(encoding="utf-8").partition(HIDDEN_MARKER)[0]
    try:
        functions = [*_functions(ast.parse(tests))]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # it can't be run either
    copies: set[str] = set()
    callers: defaultdict[str, list[str]] = defaultdict(list)
    for function in functions:
        for name in _names(function):
            callers[name].append(function.name)
    new = [each.name for each in functions if _is_copy(each, _bodies(visible))]
    while new:
        name = new.pop()
        if name not in copies:
            copies.add(name)
            new += callers[name]
    return [each.name for each in functions if each.name.startswith("test") and each.name in copies]


@cache
def _bodies(visible: str) -> frozenset[str]:
    """Return all statements in the bodies of visible tests."""
    functions = [each for each in _functions(ast.parse(visible)) if each.name.startswith("test")]
    return frozenset(text for function in functions for text, _ in _statements(function))


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef))


def _is_copy(function: ast.FunctionDef, known: frozenset[str]) -> bool:
    try:
        every = _statements(function)
    except (RecursionError, MemoryError):
        return True
    return sum(size for text, size in every if text in known) > _SHARE * sum(n for _, n in every)


def _statements(function: ast.FunctionDef) -> list[tuple[str, int]]:
    """Return the statements in a function, names made alike, and how much there is in each.

    Of a statement with a body, such as `with`, what stands above that is a statement by itself.
    """
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and node is not function and not _is_text(node):
            parts = [_alike(part) for part in _own_parts(node)]
            found.append((f"{type(node).__name__} {parts}", sum(map(len, parts))))
    return found


def _is_text(node: ast.stmt) -> bool:
    """Tell whether a statement is a docstring or another text that does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _own_parts(node: ast.stmt) -> list[ast.AST]:
    """Return what belongs to a statement itself, without the statements in it."""
    parts = ast.iter_child_nodes(node)
    return [part for part in parts if not isinstance(part, _WITH_STATEMENTS)]


def _alike(part: ast.AST) -> str:
    """Return a piece of code with its names replaced by the order in which they come."""
    order: dict[str, str] = {}
    part = deepcopy(part)
    for node in ast.walk(part):
        if isinstance(node, ast.Name):
            node.id = order.setdefault(node.id, f"_{len(order)}")
    return ast.unparse(part)


def _names(function: ast.FunctionDef) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
