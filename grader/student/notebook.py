"""Save a notebook's cell to problem.py, and test this file.

As in grading, tests run in a separate process and load only the file. Definitions in other cells
are not available to the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

from grader.code.loading import STUDENT_MODULE, load_module
from grader.course import Problem, own_course
from grader.files import back_up, write_whole


def show(name: str) -> None:
    """Run pytest on a problem's saved `problem.py`, and print the output.

    Args:
        name: the problem's id, number, or a substring of the id.

    Raises:
        UsageError: the name matches no problem, or several problems.
    """
    (problem,) = own_course().select([name])
    done = subprocess.run(
        # -P: don't import modules from the problem's folder
        [sys.executable, "-P", "-m", "pytest", "--color=no"],
        cwd=problem.folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "96"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    print(done.stdout)


def add_magic(ipython: Any) -> None:
    """Add the magic command `%%problem`, which saves a cell to a problem's file and runs the cell.

    An argument selects the problem, for example `%%problem 03`.

    Args:
        ipython: the shell that runs the notebook's cells.
    """
    written: dict[str, bytes] = {}

    def problem(line: str, cell: str) -> None:
        (chosen,) = own_course().select([line.strip()])
        source = cell.rstrip("\n") + "\n"
        if saved(chosen, source.encode(), written.get(chosen.id)):
            written[chosen.id] = source.encode()
            # As in tests, run the cell as a separate module, without definitions of other cells.
            defined = vars(load_module(chosen.stub, STUDENT_MODULE + chosen.id[:2]))
            names = {name for name in defined if not name.startswith("__")}
            ipython.user_ns.update({name: defined[name] for name in names})

    ipython.register_magic_function(problem, "cell", "problem")


def saved(problem: Problem, source: bytes, before: bytes | None) -> bool:
    """Save a cell to a problem's file, print a message, and return whether the cell was saved.

    A cell with the unchanged stub does not replace an edited file. If the file was changed outside
    of the notebook, it is backed up first.

    Args:
        problem: the problem with the file.
        source: the content of the cell.
        before: the content that this notebook saved to the file most recently, or None.
    """
    stub = _same_ends(problem.original.read_bytes())
    present = _same_ends(problem.stub.read_bytes()) if problem.stub.is_file() else stub
    if source == stub != present:
        print(
            f"{problem.stub.name} contains your work, but this cell contains only the stub. "
            f"Nothing was saved. To start again: grader reset {problem.id[:2]}."
        )
        return False
    if present not in (stub, source, before):
        print(f"The old content of {problem.stub.name} is now in {back_up(problem.stub).name}.")
    write_whole(problem.stub, source)
    print(f"Saved to {problem.stub}.")
    return True


def _same_ends(source: bytes) -> bytes:
    return b"\n".join(source.splitlines()) + b"\n"
