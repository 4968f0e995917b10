"""Read the platforms' lists of students, which give the student and the time of each folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import yaml

from grader.csv_table import parse_table
from grader.errors import UsageError
from grader.intake.handed_in import UnreadSubmission
from grader.intake.tree import Refused

METADATA = "submission_metadata.yml"
"""The list in Gradescope's export. It also contains the outputs of gradings."""

SCORES = "scores.csv"
"""The list next to the clones of Classroom 50."""

LISTS = {METADATA: 100_000_000, SCORES: 5_000_000}
"""By the names of lists, the largest size in bytes at which each is read."""

Listed = Mapping[str, UnreadSubmission]
"""By the key of its folder, the submission of a student or group, still without the folder."""

_MAX_YAML = 5_000_000  # of which the names of 20,000 students are left when outputs are cut out
_KEPT = ("  :submitters:", "  :created_at:")
_NEEDED = ("username", "datetime", "submission_tag")


def iso_time(text: str) -> str:
    """Return a time in ISO 8601; empty if it cannot be parsed.

    A time without a zone is in UTC, as on the platforms that write no zone.
    """
    text = re.sub(r"(?<=\d) ?(?:UTC|GMT)\Z", "Z", text.strip())
    with suppress(ValueError):
        if ":" in text:  # otherwise it is a day
            time = datetime.fromisoformat(re.sub(r" (?=[-+Z])", "", text))
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()
    return ""


# Gradescope


def read_metadata(content: bytes) -> Listed:
    """Return the submissions on Gradescope's list, by the names of folders.

    Raises:
        Refused: it is not a list as Gradescope writes it.
    """
    try:
        text = _without_results(content.decode("utf-8-sig"))
        if len(text) > _MAX_YAML:
            raise Refused(f"lists more than {_MAX_YAML:,} characters of names")
        # BaseLoader is the strictest there is: it makes text, lists and mappings, nothing else.
        data = yaml.load(text, Loader=yaml.BaseLoader)
        return {key: _on_gradescope(key, value) for key, value in data.items()}
    except (yaml.YAMLError, ValueError, AttributeError, TypeError, RecursionError):
        raise Refused("is not a list of submissions as Gradescope writes it") from None


def _without_results(text: str) -> str:
    """Return the YAML without the results, which are long and contain students' output."""
    kept: list[str] = []
    is_kept = True
    for line in text.split("\n"):
        if re.match(r"\S|  :", line):  # a submission, or a field of one
            is_kept = line.startswith(_KEPT) or not line.startswith(" ")
        if is_kept:
            kept.append(line)
    return "\n".join(kept)


def _on_gradescope(key: str, value: Any) -> UnreadSubmission:
    fields = value if isinstance(value, dict) else {}
    people, time = fields.get(":submitters"), fields.get(":created_at")
    submitters = [_submitter(each) for each in people] if isinstance(people, list) else []
    accounts = sorted(account for _, _, account in submitters)
    return UnreadSubmission(
        f"gradescope:{'+'.join(accounts) if accounts and all(accounts) else key}",
        " + ".join(name for name, _, _ in submitters) or key,
        members=tuple(member for _, member, _ in submitters),
        time=time if isinstance(time, str) else "",
    )


def _submitter(person: Any) -> tuple[str, str, str]:
    """Return the name, the id in a gradebook, and a unique account."""
    name, email, sid = (str(person.get(key) or "") for key in (":name", ":email", ":sid"))
    return name or email or sid, email or sid or name, email.lower() or sid


# Classroom 50


def read_scores(content: bytes) -> Listed:
    """Return the submissions on the list of Classroom 50, by user name in small letters.

    It has a line for each attempt. The newest comes first, but one for marks given by hand has the
    time at which they were given. `review_url` is ignored, although it names a repository, because
    students can write into it.

    Raises:
        Refused: it is not a list as Classroom 50 writes it.
    """
    listed: dict[str, UnreadSubmission] = {}
    for row in _rows(content):
        user = row["username"]
        known = listed.get(user.lower())
        if user and not (known and known.time):
            is_manual = row["submission_tag"].startswith("submit/manual-")
            listed[user.lower()] = on_github(user, "" if is_manual else row["datetime"])
    return listed


def on_github(user: str, time: str = "") -> UnreadSubmission:
    """Return the submission of a user of GitHub."""
    return UnreadSubmission(f"github:{user.lower()}", user, members=(user,), time=time)


def _rows(content: bytes) -> list[dict[str, str]]:
    """Return the lines of a list by the names of their columns."""
    try:
        table = parse_table(content, "the list")
        if missing := [column for column in _NEEDED if column not in table.columns]:
            raise Refused(f"has no column {missing[0]!r}, as `gh teacher download` writes it")
        rows = [map(str.strip, row.cells) for row in table.rows if row.cells]
        return [dict(zip(table.columns, cells, strict=True)) for cells in rows]
    except (UsageError, ValueError):
        raise Refused("is not a CSV file in UTF-8 with as many cells in each line") from None
