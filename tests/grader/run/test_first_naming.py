"""Naming the first mistake in a student's run loads no unneeded library."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import own_course
from tests.catalogue import mistake_files
from tests.warm import WarmPython

NAMES = """
import sys
from pathlib import Path
import torch
assert "sympy" not in sys.modules, "import torch alone imports it"
from grader.course import own_course
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite

course = own_course()
suite = Suite(course.problems(), course.root)
for problem in course.problems():
    session = Session(LocalFiles(lambda problem: Path(sys.argv[1], problem.id + ".py")))
    failed = lambda: any(t.message for p in session.results.values() for t in p.tests)
    suite.run(session, [problem], enough=failed)
    named = bool(session.results[problem.id].diagnoses)
    print(problem.id, named, "sympy" in sys.modules)
"""


@pytest.mark.slow
def test_no_library_of_algebra_is_imported(tmp_path: Path, warm_python: WarmPython) -> None:
    """One test that fails is enough for a name."""
    problems = own_course().problems()
    for problem in problems:
        (tmp_path / problem.id).mkdir()
        wrong = next(iter(mistake_files(own_course(), problem, tmp_path / problem.id).values()))
        wrong.replace(tmp_path / f"{problem.id}.py")
    found = warm_python.run("-c", NAMES, str(tmp_path), cwd=own_course().root)
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == [f"{problem.id} True False" for problem in problems]
