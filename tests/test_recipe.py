"""The recipe in CONTRIBUTING.md: one new folder in problems/ and one in solutions/ make a problem.

A throw-away problem 99 is added to a copy of the course, and nothing else is touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course import own_course
from grader.testing.edits import EDITS_FILE
from tests.warm import WarmPython

Run = Callable[..., subprocess.CompletedProcess[str]]

ROOT = own_course().root
COMMAND = "import sys; sys.argv[0] = 'grader'; from grader.cli import app; app()"

README = """# 99 · Residual connection

Easy, 5 minutes, 4 points.

## Rules that the tests enforce

- The layer's output is added to its input (`test_adds`).
- The argument is left alone (`test_leaves_x_alone`).

## Hints
"""

STUB = '''"""99: the residual connection."""


def residual(x, layer_output):
    """Return the input (..., d) with the layer's output (..., d) added."""
    raise NotImplementedError
'''

TESTS = '''"""Tests of problem 99."""

import pytest
import torch

from grader.testing.compare import check, require


@pytest.mark.points(1)
def test_adds(problem):
    """residual adds its arguments"""
    x, output = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -4.0])
    check(problem.residual(x, output), torch.tensor([1.5, -2.0]), "residual(x, layer_output)")


@pytest.mark.points(1)
def test_leaves_x_alone(problem, rng):
    """residual leaves its arguments alone"""
    x = rng.normal(2, 3)
    before = x.clone()
    problem.residual(x, rng.normal(2, 3))
    require(torch.equal(x, before), "residual(x, layer_output)\\nIt changed its own x.")


# --- hidden tests ---


@pytest.mark.points(2)
def test_hidden_sum(problem, solution, rng):
    """residual is right for other shapes"""
    x, output = rng.normal(4, 2, 3), rng.normal(4, 2, 3)
    check(problem.residual(x, output), solution.residual(x, output), "residual(x, layer_output)")
'''

PROBE = '''"""Tells mistakes in problem 99 apart."""

import torch

from grader.testing.diagnosis.probe import Part


def probe(problem):
    """Ask about two vectors."""
    x, output = torch.tensor([1.0, 2.0]), torch.tensor([0.5, -4.0])
    return {
        "residual": Part(
            main={"sum": lambda: problem.residual(x.clone(), output)},
            edges={"changes x": lambda: (problem.residual(x, output), x)[1]},
        )
    }
'''

BODIES = {
    "problem": ("The residual connection.", "return x + layer_output"),
    "variants/added": ("By the function.", "return x.add(layer_output)"),
    "variants/turned": ("In the other order.", "return layer_output + x"),
}

MISTAKES = """\
== input_lost (reference)
# the input is not added
# What is left of x?
@
-    return x + layer_output
+    return layer_output

== in_place (reference)
# the argument itself is changed
# Who else holds this tensor?
@
-    return x + layer_output
+    x += layer_output
+    return x
"""


ENTRY = """
[[problems]]
id = "99-residual"
title = "Residual"
part = "two"
points = 2
difficulty = "easy"
minutes = [5, 10]
"""


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the course with the new problem's two folders."""
    root = tmp_path_factory.mktemp("a course")
    for name in ("grader", "problems", "solutions"):
        without = shutil.ignore_patterns("__pycache__", EDITS_FILE, "variants")
        shutil.copytree(ROOT / name, root / name, ignore=without)
    manifest = (ROOT / "course.toml").read_text(encoding="utf-8")
    (root / "course.toml").write_text(manifest + ENTRY, encoding="utf-8")
    problem = root / "problems/99-residual"
    problem.mkdir()
    (problem / "README.md").write_text(README, encoding="utf-8")
    (problem / "problem.py").write_text(STUB, encoding="utf-8")
    (problem / "test_residual.py").write_text(TESTS, encoding="utf-8")
    (problem / "probe.py").write_text(PROBE, encoding="utf-8")
    for name, (docstring, body) in BODIES.items():
        path = root / f"solutions/99-residual/{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        code = f'"""{docstring}\n"""\n\n\ndef residual(x, layer_output):\n    {body}\n'
        path.write_text(code, encoding="utf-8")
    (root / "solutions/99-residual" / EDITS_FILE).write_text(MISTAKES, encoding="utf-8")
    return root


@pytest.fixture
def run(course: Path, warm_python: WarmPython) -> Run:
    """Runs a command in the copy."""
    environment = os.environ | {"PYTHONPATH": str(course), "COLUMNS": "120"}
    return lambda *words: warm_python.run("-c", COMMAND, *words, cwd=course, env=environment)


@pytest.mark.slow
def test_the_audit_is_content_with_it(course: Path, run: Run) -> None:
    done = run("audit", "99", "--jobs", "1", "--write-fingerprints", "--out", "audit")
    assert done.returncode == 0, done.stdout + done.stderr
    summary = "caught 2 of 2 (by visible tests alone 2), named 2 of 2, wrongly failed 0 of 3"
    assert done.stdout.splitlines()[-1] == summary
    page = (course / "audit/audit.html").read_text(encoding="utf-8")
    assert summary in page
    assert "test_leaves_x_alone catches in_place" in page
    assert "test_adds catches in_place" not in page


def test_a_student_meets_it(run: Run) -> None:
    done = run("check", "99")
    assert done.returncode == 1
    assert "99-residual" in done.stdout
    assert "0 of 2" in done.stdout
