"""What the terminal shows of a student's way through the course."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from grader.result import ProblemResult, shown
from grader.text import printable

_WIDTH = 20


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
