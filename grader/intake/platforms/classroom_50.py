"""Classroom 50: a folder `<slug>_submissions_<time>` of clones, `<slug>-<user name>/`.

Beside the clones stands `scores.csv`, which says who is in the class and when each submission came.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping

from grader.intake.archives.kinds import without_suffix
from grader.intake.layout import Layout, Work
from grader.intake.platforms.download import Download, Platform
from grader.intake.platforms.times import iso_time
from grader.intake.problem_names import Problems, did_you_mean
from grader.intake.tree import Kind, Refused, TreeEntry, gathered
from grader.text import quoted

SCORES = "scores.csv"
"""The list of students that `gh teacher download` writes beside the clones."""

MAX_BYTES = 5_000_000
"""The most bytes that are read of it."""

_FOLDER = re.compile(r"(.+)_submissions_\d{4}(?:_\d\d){2}_T(?:_\d\d){3}")
_GROUP = re.compile(r"group-\d+")
"""What groups are called, by numbers that are another group's in the next assignment."""

_NEEDED = ("username", "datetime", "submission_tag")

Times = dict[str, tuple[str, str]]
"""By user name in small letters, the user name as it is written and when the submission came."""


def _look(download: Download, problems: Problems) -> Layout | None:
    match = _FOLDER.fullmatch(without_suffix(download.name))
    clones, others = _clones(download, f"{match[1]}-") if match else ({}, [])
    if not clones:
        return None
    layout = Layout("Classroom 50 clones", [])
    times: Times | None = None
    try:
        times = _times([*download.children, *download.beside])
    except Refused as refused:
        layout.notes = [f"{refused.sentence(SCORES)} Submissions go by their user names."]
    layout.works = _works(clones, times)
    return layout.with_others(others)


def _clones(download: Download, prefix: str) -> tuple[dict[str, TreeEntry], list[TreeEntry]]:
    """Return the clones by user name, or by what stands for it, and what else there is."""
    clones: dict[str, TreeEntry] = {}
    others = []
    for child in download.children:
        user = child.name.removeprefix(prefix)
        if child.kind is Kind.FOLDER and child.name.startswith(prefix) and user:
            clones[child.name if _GROUP.fullmatch(user) else user] = child
        elif child.name != SCORES:
            others.append(child)
    return clones, others


def _works(clones: Mapping[str, TreeEntry], times: Times | None) -> list[Work]:
    """Return a work for each clone, and for each user of the list who has none."""
    if times is None:
        return [_work(clone, user) for user, clone in clones.items()]
    left = {user: told for user, told in times.items() if user not in map(str.lower, clones)}
    works = []
    for user, clone in clones.items():
        if told := times.get(user.lower()):
            works.append(_work(clone, *told))
        else:
            near = did_you_mean(user, (name for name, _ in left.values()))
            works.append(_work(clone, user, "", f"{quoted(clone.name)} is not in {SCORES}.{near}"))
    for name, time in left.values():
        note = f"{quoted(name)} is in {SCORES}, but there is no such folder."
        works.append(_work(gathered(name, ()), name, time, note))
    return works


def _work(clone: TreeEntry, user: str, time: str = "", note: str = "") -> Work:
    notes = (note,) if note else ()
    return Work(f"github:{user.lower()}", user, clone, (user,), handed_in=time, notes=notes)


def _times(entries: Iterable[TreeEntry]) -> Times | None:
    """Return what the list among some entries says; None when there is none.

    It has a line for each submission. The newest stands first, but one for marks given by hand has
    the time at which they were given. Nothing is read of `review_url`, though it names a
    repository: students can write into it.

    Raises:
        Refused: it is not what the platform writes, or there is more than one.
    """
    found = [entry for entry in entries if entry.name == SCORES]
    if len(found) > 1:
        raise Refused("is there twice; which one counts can't be known, so keep one")
    if not found:
        return None
    times: Times = {}
    for row in _rows(found[0].read(MAX_BYTES)):
        user, tag = row["username"], row["submission_tag"]
        time = "" if tag.startswith("submit/manual-") else iso_time(row["datetime"])
        if user and not times.get(user.lower(), ("", ""))[1]:
            times[user.lower()] = user, time
    return times


def _rows(content: bytes) -> list[dict[str, str]]:
    """Return the lines of the list by the names of their columns."""
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


PLATFORM = Platform(
    _look, lists={SCORES: MAX_BYTES}, may_hold=lambda name, part: part.kind is Kind.FOLDER
)
