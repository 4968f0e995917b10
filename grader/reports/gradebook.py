"""The gradebook: one line for each submission, for spreadsheets and learning platforms."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from grader.files import write_whole
from grader.result import Status, SubmissionResult, shown

Row = dict[str, str]


def write_gradebook(results: Iterable[SubmissionResult], problems: list[str], path: Path) -> None:
    """Write `submission,status,<one column per problem>,total,max`, sorted by submission.

    The cell of a problem that was not graded is empty. For a learning platform's download the
    columns `member` and `late` follow, and a group has a row for each member.

    Args:
        results: of the whole class.
        problems: the ids of the course's problems, which name the columns.
        path: the file to write, whole or not at all.
    """
    results = list(results)
    of_platform = any(result.members for result in results)
    more = ["member", "late"] if of_platform else []
    text = io.StringIO()
    columns = ["submission", "status", *problems, "total", "max", *more]
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for result in sorted(results, key=lambda r: r.submission):
        row = _row(result, problems)
        for member in result.members or [""]:
            whose = {"member": cell(member), "late": "late" if result.late else ""}
            writer.writerow(row | whose if of_platform else row)
    write_whole(path, text.getvalue())


def _row(result: SubmissionResult, problems: list[str]) -> Row:
    row = {"submission": cell(result.submission), "status": result.status}
    if result.status == Status.INTERNAL:
        return row  # the grader's own fault is nobody's zero
    points = {problem.id: problem.points for problem in result.problems}
    row |= {id: shown(points[id]) for id in problems if id in points}
    return row | {"total": shown(result.points), "max": shown(result.max)}


def cell(text: str) -> str:
    """Return text that a spreadsheet shows and doesn't run; a formula starts with =, +, - or @."""
    # Control characters could end the line in the eyes of some readers, or hide a formula's sign.
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    # Some programs read the signs of full width, and the minus of print, as the plain ones.
    start = unicodedata.normalize("NFKC", text.lstrip())
    return f"'{plain}" if start.startswith(tuple("=+-@\N{MINUS SIGN}")) else plain


def read_gradebook(path: Path) -> dict[str, Row]:
    """Return the rows of a gradebook by submission; none when there is no such file."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {row["submission"]: row for row in csv.DictReader(file)}
    except (OSError, ValueError, KeyError, csv.Error):
        return {}


@dataclass(frozen=True)
class Change:
    """A mark that is not what the previous gradebook said.

    Attributes:
        submission: whose.
        problem: the problem's id.
        before: the points in the previous gradebook.
        now: the points that count.
        reason: why the problem was graded again.
    """

    submission: str
    problem: str
    before: str
    now: str
    reason: str

    def __str__(self) -> str:
        """Return it as a line."""
        return f"{self.submission}: {self.problem} {self.before} -> {self.now} ({self.reason})"


def changes(previous: dict[str, Row], results: Iterable[SubmissionResult]) -> list[Change]:
    """Return the marks that are not those of the previous gradebook, and why.

    Args:
        previous: the rows of the previous gradebook.
        results: of the class as it is now.
    """
    found = []
    for result in sorted(results, key=lambda r: r.submission):
        row = previous.get(cell(result.submission), {})
        for problem in result.problems:
            before, now = row.get(problem.id), shown(problem.points)
            if before and before != now:
                change = Change(result.submission, problem.id, before, now, problem.reason)
                found.append(change)
    return found
