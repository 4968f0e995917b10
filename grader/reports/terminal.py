"""What the terminal shows of a class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.markup import escape
from rich.table import Table

from grader.reports.gradebook import Change
from grader.result import ProblemResult, Status, SubmissionResult, shown
from grader.text import line

_NAMED = {
    Status.TIMEOUT: "does not end",
    Status.CRASH: "crashes",
    Status.MEMORY: "out of memory",
    Status.FORBIDDEN: "forbidden function",
    Status.BAD_OUTPUT: "unreadable answer",
    Status.INTERNAL: "grader's fault",
}

NOT_CONFINED = (
    "NOT IN A SANDBOX: students' code could read and change whatever you can, these marks included."
)


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
        internal = result.status == Status.INTERNAL
        total = "-" if internal else f"{shown(result.points)} / {shown(result.max)}"
        table.add_row(escape(line(result.submission)), *cells, total)
    return table


def remarks(results: Iterable[SubmissionResult]) -> list[str]:
    """Return a line for each submission that an instructor should look at.

    A line before them says so if students' code wasn't kept in a sandbox.
    """
    results = list(results)
    told = [(result.submission, remark(result)) for result in results]
    lines = [line(f"{name}: {text}") for name, text in sorted(told) if text]
    unconfined = any(result.isolation == "process" for result in results)
    return [NOT_CONFINED, *lines] if unconfined else lines


def about_run(
    graded: int,
    changed: Sequence[Change],
    left_out: Sequence[str],
    unchanged: Sequence[str] = (),
    outdated: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Return what is to be said of a run beside its results.

    Args:
        graded: how many submissions were graded, wholly or in part.
        changed: the marks that are not those of the gradebook before.
        left_out: names with earlier results that are not in the class.
        unchanged: names whose rows are as they were, for they did not hand in the one problem.
        outdated: the problems with kept marks that rest on what has changed since, and on what.
    """
    told = [line(f"changed: {change}") for change in changed]
    if unchanged:
        told.append(
            line(f"Handed in nothing for this problem, so as they were: {', '.join(unchanged)}.")
        )
    for id, names in (outdated or {}).items():
        told.append(
            line(
                f"{id}: some marks are of an earlier run and no longer hold "
                f"({', '.join(names)} changed); grade what was handed in for it again."
            )
        )
    if left_out:
        told.append(
            line(
                f"Not in this class, so not in the reports: {', '.join(left_out)} "
                "(earlier results are still in the folder)."
            )
        )
    if not graded:
        told.append("Nothing had to be graded: all earlier results still hold.")
    return told


def remark(result: SubmissionResult) -> str:
    """Return what an instructor should know of a submission; empty when all is usual."""
    told = ["not attempted."] if result.status == "not_attempted" else []
    told += result.notes
    for problem in result.problems:
        told += problem.notes or _standing_out(problem)
        if problem.repeated:
            told.append(f"{problem.id[:2]}: tried again alone after a timeout.")
    return " ".join(dict.fromkeys(told))


def _standing_out(problem: ProblemResult) -> list[str]:
    failed = [t for t in problem.tests if t.status != Status.PASSED]
    alike = len({t.message for t in problem.tests}) == 1
    if failed and failed[0].message and alike and not problem.untouched:
        return [f"{problem.id[:2]}: {failed[0].message.splitlines()[0]}"]
    found = dict.fromkeys(_NAMED[t.status] for t in failed if t.status in _NAMED)
    return [f"{problem.id[:2]}: {', '.join(found)}."] if found else []
