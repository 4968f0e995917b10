"""A student's file is held to the same rules at home and when it is graded, in the same words."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.course import COURSE_VARIABLE, Course
from grader.result import ProblemResult, SubmissionResult
from tests.lent import lent_template

DOUBLE = "\ndef double(x): return x + x\n"
PACKAGE = "problem.py can't import {}: it is graded by itself. Use Python's standard library"
INPUT = "problem.py can't read input"

# Of each file the sentence that refuses it; "" for one that is right. All packages are installed.
FILES = {
    "package": ("import yaml" + DOUBLE, PACKAGE.format("yaml")),
    "part of a package": ("from rich.console import Console" + DOUBLE, PACKAGE.format("rich")),
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
    "name alone": (
        "from importlib import import_module\nimport_module('.text', 'rich')" + DOUBLE,
        PACKAGE.format("rich"),
    ),
    "dunder": ("__import__('yaml')" + DOUBLE, PACKAGE.format("yaml")),
    "star": ("from yaml import *" + DOUBLE, PACKAGE.format("yaml")),
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
    "bytes": ("import sys\nsys.stdin.buffer.read()" + DOUBLE, INPUT),
    "lines": ("import sys\nfor line in sys.stdin:\n    print(line)" + DOUBLE, INPUT),
    "all lines": ("import sys\nrows = list(sys.stdin)" + DOUBLE, INPUT),
    "json": ("import json, sys\njson.load(sys.stdin)" + DOUBLE, INPUT),
    "opened": ("open(0).read()" + DOUBLE, INPUT),
    "end of input": ("try:\n    input()\nexcept EOFError:\n    pass" + DOUBLE, ""),
    "not read": ("import sys\nsys.stdin.isatty(), sys.stdin.encoding" + DOUBLE, ""),
}


@pytest.fixture(scope="module")
def graded(origin, new_course, tmp_path_factory) -> dict[str, ProblemResult]:
    """The results of all of these files."""
    root = tmp_path_factory.mktemp("same rules")
    course: Course = new_course(root / "course")
    for name, (source, _) in FILES.items():
        folder = root / "class" / name / "01-doubling"
        folder.mkdir(parents=True)
        (folder / "problem.py").write_text(textwrap.dedent(source), encoding="utf-8")
    words = ["grade", str(root / "class"), "--out", str(root / "out"), "--jobs", "1"]
    with lent_template(origin):
        done = CliRunner().invoke(app, words, env={COURSE_VARIABLE: str(course.root)})
    assert done.exit_code == 0, done.output
    results = [
        SubmissionResult.from_json(json.loads(path.read_text(encoding="utf-8")))
        for path in (root / "out/results").iterdir()
    ]
    return {result.submission: result.problems[0] for result in results}


def message(result: ProblemResult) -> str:
    return result.tests[0].message


@pytest.mark.parametrize("name", FILES)
def test_the_same_words(
    graded: dict[str, ProblemResult], run: Callable[..., ProblemResult], name: str
) -> None:
    source, sentence = FILES[name]
    here, there = run(source), graded[name]
    assert message(there) == message(here)
    assert sentence in " ".join(message(here).split())
    assert here.passed == there.passed == (not sentence)
