"""The first mistake that is named in a student's run costs no more than it must."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grader.course import Problem, own_course
from tests.catalogue import mistake_files

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
problem = next(each for each in course.problems() if each.id == sys.argv[1])
session = Session(LocalFiles(lambda _: Path(sys.argv[2])))
Suite([problem], course.root).run(session)
print(session.results[problem.id].diagnoses)
print("sympy" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize("problem", own_course().problems(), ids=lambda problem: problem.id)
def test_no_library_of_algebra_is_imported(problem: Problem, tmp_path: Path) -> None:
    wrong = next(iter(mistake_files(own_course(), problem, tmp_path).values()))
    command = [sys.executable, "-c", NAMES, problem.id, str(wrong)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    told, imported = found.stdout.splitlines()
    assert told != "[]"
    assert imported == "False"
