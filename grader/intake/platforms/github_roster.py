"""GitHub Classroom's `grades.csv`, which says whose each repository is."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import dataclass

from grader.intake.platforms.times import iso_time
from grader.intake.tree import Refused, TreeEntry
from grader.text import quoted

ROSTER = "grades.csv"
"""What `gh classroom assignment-grades` writes."""

MAX_BYTES = 5_000_000
"""The most bytes that are read of it."""

_AS_WRITTEN = "as `gh classroom assignment-grades` writes it"


@dataclass(frozen=True)
class GithubLine:
    """A line of the roster: whose repository it is.

    Attributes:
        user: the user name at GitHub.
        who: the roster identifier.
        repository: its name.
        time: when the last push came, in ISO 8601; empty where it isn't said.
    """

    user: str
    who: str
    repository: str
    time: str = ""

    @property
    def member(self) -> str:
        """What a gradebook knows the person by."""
        return self.who or self.user


def roster(entries: Iterable[TreeEntry]) -> list[GithubLine] | None:
    """Return what the roster among some entries says; None when there is none.

    Raises:
        Refused: it is not what GitHub Classroom writes, or there is more than one.
    """
    found = [entry for entry in entries if entry.name == ROSTER]
    if len(found) > 1:
        raise Refused("is there twice; which one counts can't be known, so keep one")
    return _lines(found[0].read(MAX_BYTES)) if found else None


def _lines(content: bytes) -> list[GithubLine]:
    lines: dict[GithubLine, None] = {}
    known: dict[str, str] = {}
    for row in _rows(content):
        line = GithubLine(
            row.get("github_username", ""),
            row["roster_identifier"],
            row.get("student_repository_name", "").rpartition("/")[2],
            iso_time(row.get("submission_timestamp", "")),
        )
        other = known.setdefault(line.user.lower(), line.who) if line.user else line.who
        if other != line.who:
            both = f"{quoted(line.user)} as {quoted(other)} and as {quoted(line.who)}"
            raise Refused(f"gives {both}; which one counts can't be known")
        if any((line.user, line.who, line.repository)):
            lines[line] = None
    return list(lines)


def _rows(content: bytes) -> list[dict[str, str]]:
    """Return the lines of a roster by the names of their columns."""
    rows = []
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        columns = next(reader, [])
        if "roster_identifier" not in columns:
            raise Refused(f"has no column 'roster_identifier', {_AS_WRITTEN}")
        if not {"github_username", "student_repository_name"} & set(columns):
            which = "'github_username' or 'student_repository_name'"
            raise Refused(f"has no column {which}, {_AS_WRITTEN}")
        for row in filter(None, reader):
            if len(row) != len(columns):
                place = f"in line {reader.line_num}, not {len(columns)}"
                raise Refused(f"has {len(row)} columns {place}")
            rows.append({name: cell.strip() for name, cell in zip(columns, row, strict=True)})
    except (ValueError, csv.Error):
        raise Refused("is not a CSV file in UTF-8") from None
    return rows
