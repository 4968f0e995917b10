"""Tests a problem from a notebook, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

from grader.course import own_course


def show(name: str) -> None:
    """Print what pytest says of the problem.py that is saved; a notebook's cells are not tested.

    Args:
        name: an id, a number or a part of an id.

    Raises:
        UsageError: the name fits no problem, or more than one.
    """
    (problem,) = own_course().select([name])
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pytest", "--color=no"],  # -P: not the problem's folder first
        cwd=problem.folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "96"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    print(done.stdout)
