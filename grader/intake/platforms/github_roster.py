"""GitHub Classroom's `grades.csv` and Classroom 50's `scores.csv`: whose each repository is."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grader.intake.platforms.times import iso_time
from grader.intake.tree import Refused, TreeEntry
from grader.text import quoted

ROSTER = "grades.csv"
"""What `gh classroom assignment-grades` writes."""

SCORES = "scores.csv"
"""What `gh teacher download` of Classroom 50 writes beside the clones."""

MAX_BYTES = 5_000_000
"""The most bytes that are read of one."""

_NEEDED = {
    ROSTER: (("roster_identifier",), ("github_username", "student_repository_name")),
    SCORES: (("username",), ("datetime",), ("submission_tag",)),
}
"""The columns of each, of which one of several has to be there."""

_AS_WRITTEN = {
    ROSTER: "as `gh classroom assignment-grades` writes it",
    SCORES: "as `gh teacher download` writes it",
}


@dataclass(frozen=True)
class GithubLine:
    """A line of the roster: whose repository it is.

    Attributes:
        user: the user name at GitHub.
        who: the roster identifier; in Classroom 50 the user name.
        repository: its name; empty where it isn't said.
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


def roster(entries: Iterable[TreeEntry], name: str) -> list[GithubLine] | None:
    """Return what the roster among some entries says; None when there is none.

    Args:
        entries: what stands beside the clones.
        name: which of the two it is.

    Raises:
        Refused: it is not what the platform writes, or there is more than one.
    """
    found = [entry for entry in entries if entry.name == name]
    if len(found) > 1:
        raise Refused("is there twice; which one counts can't be known, so keep one")
    if not found:
        return None
    rows = _rows(found[0].read(MAX_BYTES), name)
    return _lines(rows) if name == ROSTER else _lines_of_scores(rows)


def _lines_of_scores(rows: Iterable[Mapping[str, str]]) -> list[GithubLine]:
    """Return a line for each user of `scores.csv`, which has one for each submission.

    The newest stands first, but one for marks given by hand has the time at which they were given.
    Nothing is read of `review_url`, though it names a repository: students can write into it.
    """
    found: dict[str, GithubLine] = {}
    for row in rows:
        user, tag = row["username"], row["submission_tag"]
        time = "" if tag.startswith("submit/manual-") else iso_time(row["datetime"])
        known = found.get(user.lower())
        if user and (known is None or not known.time):
            found[user.lower()] = GithubLine(user, user, "", time)
    return list(found.values())


def _lines(rows: Iterable[Mapping[str, str]]) -> list[GithubLine]:
    lines: dict[GithubLine, None] = {}
    known: dict[str, str] = {}
    for row in rows:
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


def _rows(content: bytes, name: str) -> list[dict[str, str]]:
    """Return the lines of a roster by the names of their columns."""
    rows = []
    try:
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        columns = next(reader, [])
        for one_of in _NEEDED[name]:
            if not {*one_of} & {*columns}:
                which = " or ".join(map(repr, one_of))
                raise Refused(f"has no column {which}, {_AS_WRITTEN[name]}")
        for row in filter(None, reader):
            if len(row) != len(columns):
                place = f"in line {reader.line_num}, not {len(columns)}"
                raise Refused(f"has {len(row)} columns {place}")
            rows.append({column: cell.strip() for column, cell in zip(columns, row, strict=True)})
    except (ValueError, csv.Error):
        raise Refused("is not a CSV file in UTF-8") from None
    return rows
