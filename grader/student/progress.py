"""What the terminal shows of a student's way through the course."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from grader.course import Problem
from grader.result import ProblemResult, shown, total
from grader.student.report import next_step
from grader.text import printable

_WIDTH = 20


def show_progress(console: Console, results: Mapping[Problem, ProblemResult]) -> Problem | None:
    """Print the table, the points of all, and what to do next; return the first open problem.

    Args:
        console: where to print.
        results: what each problem's tests found, in the order of the course.
    """
    console.print(progress_table(results.values(), console.encoding))
    points, most = (total(getattr(r, name) for r in results.values()) for name in ("points", "max"))
    console.print(f"\n{shown(points)} of {shown(most)} points.")
    todo = next((problem for problem, result in results.items() if not result.passed), None)
    if todo is None:
        console.print("Everything here passes. Well done!")
        return None
    text = f"{todo.id}: {next_step(results[todo])}"
    console.print(printable(text, console.encoding), markup=False)
    console.print(f"For the details: {_to(todo.folder)}uv run pytest", markup=False)
    console.print(f"For a hint: uv run grader hint {todo.id[:2]}", markup=False)
    return todo


def _to(folder: Path) -> str:
    """Return what to type in front of a command that is to run in `folder`."""
    try:
        way = os.path.relpath(folder)
    except ValueError:  # on another drive
        way = str(folder)
    return "" if way == "." else f"cd {shlex.quote(way)} && "


def progress_table(results: Iterable[ProblemResult], encoding: str = "utf-8") -> Table:
    """Return the progress: a line with points, a bar and a word for each problem.

    Args:
        results: what the problems' tests found, in the order of the course.
        encoding: the terminal's; symbols that it does not have are replaced.
    """
    table = Table(box=None, pad_edge=False)
    table.add_column("problem", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    for result in results:
        points = f"{shown(result.points)} of {shown(result.max)}" if result.tests else ""
        table.add_row(result.id, points, printable(_bar(result), encoding), _state(result))
    return table


def _bar(result: ProblemResult) -> str:
    full = int(_WIDTH * result.points / result.max) if result.max else 0
    return f"[green]{'█' * full}[/][dim]{'░' * (_WIDTH - full)}[/]"


def _state(result: ProblemResult) -> str:
    if not result.tests:
        return ""
    if result.passed:
        return "[green]done[/]"
    return "[dim]not started[/]" if result.untouched else "[yellow]in progress[/]"
