"""The gradebook: one line for each submission, for spreadsheets and learning platforms."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from grader.result import SubmissionResult, shown, write_whole


def write_gradebook(results: Iterable[SubmissionResult], problems: list[str], path: Path) -> None:
    """Write `submission,status,<one column per problem>,total,max`, sorted by submission.

    For a learning platform's download the columns `member` and `late` follow, and a group has a row
    for each member.

    Args:
        results: of the whole class.
        problems: the ids of the course's problems, which name the columns.
        path: the file to write, whole or not at all.
    """
    results = list(results)
    of_platform = any(result.members for result in results)
    more = ["member", "late"] if of_platform else []
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["submission", "status", *problems, "total", "max", *more])
    for result in sorted(results, key=lambda r: r.submission):
        points = {problem.id: problem.points for problem in result.problems}
        columns = [shown(points.get(id, 0)) for id in problems]
        total, of = shown(result.points), shown(result.max)
        row = [cell(result.submission), result.status, *columns, total, of]
        for member in result.members or [""]:
            whose = [cell(member), "late" if result.late else ""] if of_platform else []
            writer.writerow([*row, *whose])
    write_whole(path, text.getvalue())


def cell(text: str) -> str:
    """Return text that a spreadsheet shows and doesn't run; a formula starts with =, +, - or @."""
    # Control characters could end the line in the eyes of some readers, or hide a formula's sign.
    plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return f"'{plain}" if text.lstrip().startswith(tuple("=+-@")) else plain
