"""Write, read and compare the gradebook, a CSV file with a line for each submission."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.csv_table import read_table
from grader.errors import UsageError
from grader.files import write_whole
from grader.reports.display_names import by_name
from grader.reports.wording import adjustment_line
from grader.result import ProblemResult, Status, SubmissionResult, readable_names, shown
from grader.text import cell

GradebookRow = dict[str, str]


def write_gradebook(
    results: Iterable[SubmissionResult],
    problems: Sequence[str],
    path: Path,
    optional: Mapping[str, Sequence[str]] | None = None,
    sections: Mapping[str, str] | None = None,
) -> None:
    """Write the columns `submission,identity,status,<one per problem>,total,max`.

    The rows are sorted by name. The column `submission` contains the name of the student. The file
    begins with a byte order mark, which spreadsheets need. The cell of a problem that was not
    graded is empty.

    Each optional part, such as `two`, adds a column for each of its problems and the columns
    `part_two_total` and `part_two_max`. If the submissions are from a platform, the columns
    `member` and `late` follow, and each member of a group has a row. The columns `section` and
    `adjustments` are added if they are not empty.

    Args:
        results: the results of the whole class.
        problems: the ids of the required problems.
        path: the file, which is written atomically.
        optional: maps the id of each optional part to the ids of its problems.
        sections: maps the name of each submission to the student's section.
    """
    results, optional, sections = by_name(results), optional or {}, sections or {}
    names = readable_names(results)
    of_platform = any(r.members or r.late for r in results)
    more = ["member", "late"] if of_platform else []
    more += ["section"] if sections else []
    text = io.StringIO()
    more += ["adjustments"] if any(p.adjustments for r in results for p in r.problems) else []
    of_parts = [
        column
        for part, ids in optional.items()
        for column in (*ids, f"part_{part}_total", f"part_{part}_max")
    ]
    columns = ["submission", "identity", "status", *problems, "total", "max", *of_parts, *more]
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for result in results:
        row = {"submission": cell(names[result.submission]), "identity": cell(result.who)}
        row |= _row(result, problems) | _row_of_optional(result, optional)
        row |= {"section": cell(sections.get(result.submission, ""))} if sections else {}
        for member in result.members or [""]:
            of_member = {"member": cell(member), "late": "late" if result.late else ""}
            writer.writerow(row | of_member if of_platform else row)
    write_whole(path, text.getvalue().encode("utf-8-sig"))


def _row(result: SubmissionResult, problems: Sequence[str]) -> GradebookRow:
    row = {"status": result.status}
    if result.status == Status.INTERNAL:
        return row  # an error of the grader does not count as zero
    points = {problem.id: problem.points for problem in result.problems}
    row |= {id: shown(points[id]) for id in problems if id in points}
    if result.counted:
        row |= {"total": shown(result.points), "max": shown(result.max)}
    changed = [f"{p.id[:2]}: {adjustment_line(a)}" for p in result.problems for a in p.adjustments]
    return row | ({"adjustments": cell("; ".join(changed))} if changed else {})


def _row_of_optional(result: SubmissionResult, parts: Iterable[str]) -> GradebookRow:
    """Return the cells of the optional parts that were attempted, by column."""
    row: GradebookRow = {}
    if result.status == Status.INTERNAL:
        return row
    tried = result.optional
    for id in parts:
        if id in tried:
            row |= {problem.id: shown(problem.points) for problem in tried[id].problems}
            row |= {f"part_{id}_total": shown(tried[id].points)}
            row |= {f"part_{id}_max": shown(tried[id].max)}
    return row


def read_gradebook(path: Path) -> dict[str, GradebookRow]:
    """Map each identity to its row in a gradebook. Return no rows if the file can't be read."""
    try:
        table = read_table(path, comments=False)
        rows = [dict(zip(table.columns, row.cells, strict=False)) for row in table.rows]
        return {row["identity"]: row for row in rows}
    except (UsageError, KeyError):
        return {}


@dataclass(frozen=True)
class Change:
    """A mark that differs from the previous gradebook.

    Attributes:
        name: the name of the student.
        submission: the name of the submission; empty if there is no longer a result.
        problem: the problem's id.
        before: the points in the previous gradebook.
        now: the current points; `_GONE` if the mark no longer exists.
        reason: the reason why the problem was graded again or adjusted.
    """

    name: str
    submission: str
    problem: str
    before: str
    now: str
    reason: str

    def __str__(self) -> str:
        """Return a line of text about the change."""
        return f"{self.name}: {self.problem} {self.before} -> {self.now} ({self.reason})"


_GONE = "none"

_MARKS = re.compile(r"\d\d-.*")
"""Matches the name of a column that contains the marks of a problem, such as `01-name`."""


def marks_gone(
    previous: dict[str, GradebookRow],
    results: Iterable[SubmissionResult],
    pending: Collection[tuple[str, str]] = (),
    joined: Mapping[str, str] | None = None,
) -> list[Change]:
    """Return a change for each mark of the previous gradebook that has no current result.

    Args:
        previous: maps each identity to its row in the previous gradebook.
        results: the results of the class.
        pending: a (row, column) pair for each mark that is not graded yet in a dry run.
        joined: maps the identity of a previous row to the name of the row that now includes it.
    """
    whys = {cell(who): f"combined with {other}" for who, other in (joined or {}).items()}
    there, faults = {*pending}, set()
    for result in results:
        who = cell(result.who)
        if result.status == Status.INTERNAL:  # the next run grades this submission again
            faults.add(who)
        there |= {(who, problem.id) for problem in result.problems}
    return [
        Change(
            row["submission"], "", column, mark, _GONE, whys.get(who, "there is no longer a result")
        )
        for who, row in previous.items()
        for column, mark in row.items()
        if mark and column and _MARKS.fullmatch(column)
        if who not in faults and (who, column) not in there
    ]


def changes(
    previous: dict[str, GradebookRow],
    results: Iterable[SubmissionResult],
    known: Mapping[str, SubmissionResult] | None = None,
    pending: Collection[tuple[str, str]] = (),
    joined: Mapping[str, str] | None = None,
) -> list[Change]:
    """Return the marks that differ from the previous gradebook.

    Marks that no longer have a result come last.

    Args:
        previous: maps each identity to its row in the previous gradebook.
        results: the results of the class.
        known: maps the name of each submission to its previous result.
        pending: a (row, column) pair for each mark that is not graded yet in a dry run.
        joined: maps the identity of a previous row to the name of the row that now includes it.
    """
    changed = []
    results = by_name(results)
    names = readable_names(results)
    for result in results:
        row = previous.get(cell(result.who), {})
        of_before = (known or {}).get(result.submission)
        old = {problem.id: problem for problem in of_before.problems} if of_before else {}
        for problem in result.problems:
            before, now = row.get(problem.id), shown(problem.points)
            if before and before != now:
                why = _why_changed(problem, old.get(problem.id))
                name = names[result.submission]
                changed.append(Change(name, result.submission, problem.id, before, now, why))
    return changed + marks_gone(previous, results, pending, joined)


def _why_changed(now: ProblemResult, before: ProblemResult | None) -> str:
    """Return the reason why a mark changed.

    Args:
        now: the new result.
        before: the previous result; None if it is unknown.
    """
    if before is None or now.tests != before.tests:
        reasons = [now.reason, *(a.reason for a in now.adjustments)]
    else:
        new = [a.reason for a in now.adjustments if a not in before.adjustments]
        dropped = [a.reason for a in before.adjustments if a not in now.adjustments]
        dropped = [f"no longer: {reason}" for reason in dropped]
        reasons = new or dropped or [a.reason for a in now.adjustments]
    return "; ".join(reasons) or now.reason
