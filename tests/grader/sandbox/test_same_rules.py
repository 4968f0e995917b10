"""The same rules apply to a student's file at home and in grading, with the same messages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.result import ProblemResult
from grader.sandbox.spawn import may_want_compiler

DOUBLE = "\ndef double(x): return x + x\n"
PACKAGE = "problem.py can't import {}: it is graded alone. Use Python's standard library"
INPUT = "problem.py can't read input"

# Maps names to (text of a file, expected message) pairs. A file with the message "" is allowed.
FILES = {
    "package": ("import yaml" + DOUBLE, PACKAGE.format("yaml")),
    "needed by torch": ("import sympy as sp" + DOUBLE, PACKAGE.format("sympy")),
    "of the course": ("import matplotlib.pyplot as plt" + DOUBLE, PACKAGE.format("matplotlib")),
    "of the tests": ("import pytest" + DOUBLE, PACKAGE.format("pytest")),
    "the grader": ("import grader.code" + DOUBLE, PACKAGE.format("grader")),
    "not there": ("import no_such_module" + DOUBLE, PACKAGE.format("no_such_module")),
    "in a call": ("def double(x):\n    import yaml\n    return x + x", PACKAGE.format("yaml")),
    "by name": (
        "import importlib\nimportlib.import_module('yaml.nodes')" + DOUBLE,
        PACKAGE.format("yaml"),
    ),
    "dunder": ("__import__('yaml')" + DOUBLE, PACKAGE.format("yaml")),
    "tried": ("try:\n    import yaml\nexcept ImportError:\n    yaml = None" + DOUBLE, ""),
    "for types": (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import yaml" + DOUBLE,
        "",
    ),
    "as a script": (DOUBLE + "if __name__ == '__main__':\n    import yaml", ""),
    "allowed": ("import json, math, torch, numpy, functorch, typing_extensions" + DOUBLE, ""),
    "input": ("n = int(input('How many rows? '))" + DOUBLE, INPUT),
    "input of builtins": ("import builtins\nbuiltins.input()" + DOUBLE, INPUT),
    "input in a call": ("def double(x):\n    input()\n    return x + x", INPUT),
    "read": ("import sys\ntext = sys.stdin.read()" + DOUBLE, INPUT),
    "readline": ("from sys import stdin\nstdin.readline()" + DOUBLE, INPUT),
    "opened": ("open(0).read()" + DOUBLE, INPUT),
    "end of input": ("try:\n    input()\nexcept EOFError:\n    pass" + DOUBLE, ""),
    "not read": ("import sys\nsys.stdin.isatty(), sys.stdin.encoding" + DOUBLE, ""),
}


def case(name: str) -> object:
    """Mark a file as slow if its worker has to load torch's compiler."""
    slow = may_want_compiler(FILES[name][0].encode())
    return pytest.param(name, marks=pytest.mark.slow) if slow else name


@pytest.mark.parametrize("name", map(case, FILES))
def test_messages_are_the_same_at_home_and_in_grading(
    graded: Callable[[str], ProblemResult], run: Callable[..., ProblemResult], name: str
) -> None:
    source, sentence = FILES[name]
    here, there = run(source), graded(source)
    message = here.tests[0].message
    assert there.tests[0].message == message
    assert sentence in " ".join(message.split())
    assert here.passed == there.passed == (not sentence)
