"""Find the line in a student's file that the first failing test is about."""

from __future__ import annotations

import ast
import os
import re

from grader.course import Problem
from grader.result import ProblemResult, TestResult


def place_of(problem: Problem, result: ProblemResult) -> str:
    """Return a place that terminals link to, such as "problem.py:31", or nothing.

    It is the first function or class that the test names. The message of an exception has its own
    place. The path is relative to the current folder.
    """
    test = next((test for test in result.tests if test.is_wrong and test.is_judged), None)
    line = _line(problem, test) if test else None
    return f"{os.path.relpath(problem.stub)}:{line}" if line else ""


def _line(problem: Problem, test: TestResult) -> int | None:
    if f" {problem.stub.name}:" in test.message:
        return None
    lines = _definitions(problem)
    words = re.findall(r"\w+", f"{test.message.partition(chr(10))[0]} {test.title}")
    return next((lines[word] for word in words if word in lines), None)


def _definitions(problem: Problem) -> dict[str, int]:
    """Return the line of each function and class in a student's file; none if it has an error."""
    try:
        tree = ast.parse(problem.stub.read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return {}
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {node.name: node.lineno for node in tree.body if isinstance(node, kinds)}
