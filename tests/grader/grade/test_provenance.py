"""What marks rest on is known without loading what takes long."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch

from grader.grade.provenance import torch_version

NOTHING_TO_DO = """
import sys
from pathlib import Path
import grader.cli
from grader.course import Course
course = Course(Path(sys.argv.pop(1)))
grader.cli.own_course = lambda: course
try:
    grader.cli.app()
finally:
    print("loaded:", sorted({"torch", "numpy", "pytest", "distributed"} & sys.modules.keys()))
"""


def test_the_version_of_torch_is_what_torch_says() -> None:
    assert torch_version() == str(torch.__version__)


@pytest.mark.slow
def test_a_run_with_nothing_to_do_loads_no_torch(school: Any) -> None:
    school.grade()
    command = [sys.executable, "-c", NOTHING_TO_DO, str(school.course.root), "grade"]
    command += [str(school.folder), "--out", str(school.out)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing had to be graded" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded: []"
