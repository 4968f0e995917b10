"""What the terminal shows of a class."""

from __future__ import annotations

from collections.abc import Iterable

from rich.markup import escape
from rich.table import Table

from grader.result import ProblemResult, Status, SubmissionResult, shown

_NAMED = {
    Status.TIMEOUT: "does not end",
    Status.CRASH: "crashes",
    Status.MEMORY: "out of memory",
    Status.FORBIDDEN: "forbidden function",
    Status.BAD_OUTPUT: "unreadable answer",
    Status.INTERNAL: "grader's fault",
}


def class_table(results: Iterable[SubmissionResult], problems: list[str]) -> Table:
    """Return the class: a row for each submission, with its points.

    Args:
        results: of the whole class.
        problems: the ids of the course's problems.
    """
    table = Table(pad_edge=False)
    table.add_column("submission", overflow="fold")
    for id in problems:
        table.add_column(id[:2], justify="right")
    table.add_column("total", justify="right", style="bold")
    for result in sorted(results, key=lambda r: r.submission):
        points = {problem.id: problem for problem in result.problems}
        cells = [shown(points[id].points) if id in points else "-" for id in problems]
        total = f"{shown(result.points)} / {shown(result.max)}"
        table.add_row(escape(result.submission), *cells, total)
    return table


def remarks(results: Iterable[SubmissionResult]) -> list[str]:
    """Return a line for each submission that an instructor should look at."""
    told = [(result.submission, remark(result)) for result in results]
    return [f"{name}: {text}" for name, text in sorted(told) if text]


def remark(result: SubmissionResult) -> str:
    """Return what an instructor should know of a submission; empty when all is usual."""
    told = ["not attempted."] if result.status == "not_attempted" else []
    told += result.notes
    for problem in result.problems:
        told += problem.notes or _standing_out(problem)
    return " ".join(dict.fromkeys(told))


def _standing_out(problem: ProblemResult) -> list[str]:
    failed = [t for t in problem.tests if t.status != Status.PASSED]
    if failed and len({t.message for t in problem.tests}) == 1 and not problem.untouched:
        return [f"{problem.id[:2]}: {failed[0].message.splitlines()[0]}"]
    found = dict.fromkeys(_NAMED[t.status] for t in failed if t.status in _NAMED)
    return [f"{problem.id[:2]}: {', '.join(found)}."] if found else []
