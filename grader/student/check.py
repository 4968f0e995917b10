"""Shows how far the course's own problems have come, and what to do next."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from rich.console import Console

from grader.course import Course, Problem
from grader.result import ProblemResult, shown, total
from grader.student.progress import progress_table
from grader.student.report import next_step
from grader.testing.local_files import LocalFiles
from grader.testing.session import Session
from grader.testing.suite import run_tests
from grader.text import printable


def check(
    course: Course,
    problems: list[Problem],
    console: Console,
    *,
    hidden: bool = False,
    seed: int = 0,
) -> bool:
    """Test problems and print the progress; return whether everything passes.

    Args:
        course: whose files to test.
        problems: which of its problems.
        console: where to print.
        hidden: whether to run the hidden halves too, where they are at hand.
        seed: what the tests' inputs are drawn from.
    """
    session = Session(LocalFiles(), hidden=hidden, seed=seed)
    run_tests(problems, session, course.root)
    results = [session.results.get(p.id, ProblemResult(p.id)) for p in problems]
    console.print(progress_table(results, console.encoding))
    points, most = total(r.points for r in results), total(r.max for r in results)
    console.print(f"\n{shown(points)} of {shown(most)} points.")
    if hidden and all(p.first_hidden_line() is None for p in problems):
        console.print("The hidden tests are not in this copy of the course.")
    todo = next((p for p, r in zip(problems, results, strict=True) if not r.passed), None)
    if todo is None:
        console.print("Everything here passes. Well done!")
        if not hidden:
            console.print("Hidden tests check more when your work is graded.")
        return True
    text = f"{todo.id}: {next_step(session.results[todo.id])}"
    console.print(printable(text, console.encoding), markup=False)
    console.print(f"For the details: {_to(todo.folder)}uv run pytest", markup=False)
    console.print(f"For a hint: uv run grader hint {todo.id[:2]}", markup=False)
    return False


def _to(folder: Path) -> str:
    """Return what to type in front of a command that is to run in `folder`."""
    try:
        way = os.path.relpath(folder)
    except ValueError:  # on another drive
        way = str(folder)
    return "" if way == "." else f"cd {shlex.quote(way)} && "
