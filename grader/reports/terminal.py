"""What the terminal shows of a class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.markup import escape
from rich.table import Table

from grader.reports.gradebook import Change
from grader.reports.isolation import NOT_CONFINED, not_confined
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
    return [NOT_CONFINED, *lines] if not_confined(results) else lines


@dataclass(kw_only=True)
class RunSummary:
    """What is to be said of a run beside its results.

    Attributes:
        graded: how many submissions were graded, wholly or in part.
        changes: the marks that are not those of the gradebook before.
        left_out: names with previous results in the folder that are not in the class.
        unchanged: names that are not among those who handed in one problem: their rows are as they
            were.
        outdated: the problems whose kept marks rest on something that has changed since, and on
            what.
        damaged: names whose files in the folder of results are no results, and why.
        older: names whose previous results are of an older version.
        lost: names of both kinds that were not graded again.
        told: sentences about whose files are whose.
    """

    graded: int
    changes: Sequence[Change] = ()
    left_out: Sequence[str] = ()
    unchanged: Sequence[str] = ()
    outdated: Mapping[str, Sequence[str]] = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)
    older: Sequence[str] = ()
    lost: Sequence[str] = ()
    told: Sequence[str] = ()


def about_run(run: RunSummary) -> list[str]:
    """Return what is to be said of a run beside its results, line by line."""
    told = [*run.told, *(f"changed: {change}" for change in run.changes)]
    told += [
        f"results/{name}.json is damaged and counts as no result: {why}."
        for name, why in run.damaged.items()
    ]
    if run.older:
        told.append(f"Results of an older version are graded again: {len(run.older)}.")
    if run.lost:
        told.append(
            f"In no report, as they were not handed in to be graded again: {', '.join(run.lost)}."
        )
    if run.unchanged:
        told.append(
            f"Handed in nothing for this problem, so as they were: {', '.join(run.unchanged)}."
        )
    for id, names in run.outdated.items():
        told.append(
            f"{id}: some marks are of a previous run and no longer hold "
            f"({', '.join(names)} changed); grade what was handed in for it again."
        )
    if run.left_out:
        told.append(
            f"Not in this class, so not in the reports: {', '.join(run.left_out)} "
            "(previous results are still in the folder)."
        )
    if not run.graded:
        told.append("Nothing had to be graded: all previous results still hold.")
    return [line(text) for text in told]


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
