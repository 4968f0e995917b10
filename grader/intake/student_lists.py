"""Read the platforms' lists of students, which give the student and the time of each folder."""

from __future__ import annotations

import csv
import io
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import yaml

from grader.intake.tree import Refused

METADATA = "submission_metadata.yml"
"""The list in Gradescope's export."""

METADATA_BYTES = 100_000_000
"""The largest size at which it is read. It also contains the outputs of gradings."""

SCORES = "scores.csv"
"""The list next to the clones of Classroom 50."""

SCORES_BYTES = 5_000_000

_MAX_YAML = 5_000_000  # of which the names of 20,000 students are left when outputs are cut out
_KEPT = (":submitters:", ":created_at:")
_NEEDED = ("username", "datetime", "submission_tag")
_IN_A_ZONE = re.compile(r"(?P<time>.*\d) ?(?P<zone>[A-Za-z]{2}[\w+/-]*)")


@dataclass(frozen=True)
class Listed:
    """A student or group on a list.

    Attributes:
        key: the key of the folder in the list.
        identity: the student's id, the same in every download.
        name: the real name, if it is known.
        members: the id of each person in a gradebook.
        time: the time of submission in the list's format; empty if unknown.
    """

    key: str
    identity: str
    name: str
    members: tuple[str, ...] = ()
    time: str = ""

    @property
    def is_time_unread(self) -> bool:
        """Whether there is a time that can't be read."""
        return bool(self.time) and not iso_time(self.time)


def iso_time(text: str) -> str:
    """Return the time that a text gives; empty if it gives none, or in a zone that is not known.

    Where it gives no zone it is taken for UTC, as the platforms do that leave it out.
    """
    written = re.sub(" (?=[+-])", "", text.strip())  # such as 21:26:00 -0700
    named = _IN_A_ZONE.fullmatch(written)
    if ":" not in written:
        return ""  # a day alone
    with suppress(LookupError, OSError, ValueError):  # it is no time, or there is no such zone
        time = datetime.fromisoformat(named["time"] if named else written)
        name = named["zone"] if named else "UTC"
        zone = UTC if name in ("UTC", "GMT") else ZoneInfo(name)  # these two need no list of zones
        return (time if time.tzinfo else time.replace(tzinfo=zone)).isoformat()
    return ""


# Gradescope


def read_metadata(content: bytes) -> dict[str, Listed]:
    """Return who is on Gradescope's list, by the names of folders.

    Raises:
        Refused: it is not what Gradescope writes.
    """
    try:
        text = _only_kept(content.decode("utf-8-sig"))
        if len(text) > _MAX_YAML:
            raise Refused(f"lists more than {_MAX_YAML:,} characters of names")
        # BaseLoader is the strictest there is: it makes text, lists and mappings, nothing else.
        data = yaml.load(text, Loader=yaml.BaseLoader)
        return {key: _on_gradescope(key, value) for key, value in data.items()}
    except (yaml.YAMLError, ValueError, AttributeError, TypeError, RecursionError):
        raise Refused("is not a list of submissions as Gradescope writes it") from None


def _only_kept(text: str) -> str:
    """Return the YAML without the results, which are long and contain students' output."""
    kept: list[str] = []
    level = 0
    keep = False
    for line in text.split("\n"):
        content = line.lstrip(" ")
        indent = len(line) - len(content)
        if not content.strip():
            continue
        if not indent:
            keep, level = True, 0
        elif not level or (indent <= level and not content.startswith("-")):
            keep, level = content.startswith(_KEPT), indent
        if keep:
            kept.append(line)
    return "\n".join(kept)


def _on_gradescope(key: str, value: Any) -> Listed:
    said = value if isinstance(value, dict) else {}
    people, time = said.get(":submitters"), said.get(":created_at")
    submitters = [_submitter(each) for each in people] if isinstance(people, list) else []
    accounts = sorted(account for _, _, account in submitters)
    return Listed(
        key,
        f"gradescope:{'+'.join(accounts) if accounts and all(accounts) else key}",
        " + ".join(name for name, _, _ in submitters) or key,
        tuple(member for _, member, _ in submitters),
        time if isinstance(time, str) else "",
    )


def _submitter(who: Any) -> tuple[str, str, str]:
    """Return the name, the id in a gradebook, and a unique account."""
    name, email, sid = (str(who.get(key) or "") for key in (":name", ":email", ":sid"))
    return name or email or sid, email or sid or name, email.lower() or sid


# Classroom 50


def read_scores(content: bytes) -> dict[str, Listed]:
    """Return who is on the list of Classroom 50, by user name; it has a line for each submission.

    The newest stands first, but one for marks given by hand has the time at which they were given.
    Nothing is read of `review_url`, though it names a repository: students can write into it.

    Raises:
        Refused: it is not what Classroom 50 writes.
    """
    found: dict[str, Listed] = {}
    for row in _rows(content):
        user, tag = row["username"], row["submission_tag"]
        known = found.get(user.lower())
        if user and (known is None or not known.time):
            time = "" if tag.startswith("submit/manual-") else row["datetime"]
            found[user.lower()] = on_github(user, time)
    return found


def on_github(user: str, time: str = "") -> Listed:
    """Return a user of GitHub."""
    return Listed(user, f"github:{user.lower()}", user, (user,), time)


def _rows(content: bytes) -> list[dict[str, str]]:
    """Return the lines of a list by the names of their columns."""
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        for column in _NEEDED:
            if column not in (reader.fieldnames or ()):
                raise Refused(f"has no column {column!r}, as `gh teacher download` writes it")
        rows = []
        for row in reader:
            if None in row or None in row.values():
                raise Refused(f"has too many or too few columns in line {reader.line_num}")
            rows.append({column: cell.strip() for column, cell in row.items()})
    except (ValueError, csv.Error):
        raise Refused("is not a CSV file in UTF-8") from None
    return rows
