"""Brightspace (D2L): folders `<number>-<number> - Ada Lovelace - Sep 24, 2024 926 PM`.

One of the two numbers is the user's and the other the assignment's: the user's is the one that
differs from person to person. Where that can't be seen, both together tell who it is. Of several
folders of one person the newest counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from grader.intake.layout import Layout, Work
from grader.intake.platforms.download import Download, Platform, Upload
from grader.intake.problem_names import Problems
from grader.intake.tree import Kind, TreeEntry, gathered

_NAME = re.compile(
    r"(?P<first>\d+)-(?P<second>\d+) - (?P<name>.+) - "
    r"(?P<day>\w+ \w+,? \d{4}),? (?P<hour>\d{3,4})(?P<half> [AP]M)?"
)
_INDEX = "index.html"


def _look(download: Download, problems: Problems) -> Layout | None:
    children = [child for child in download.children if child.name != _INDEX]
    download = replace(download, children=children)
    if not (found := download.fitting(_match)):
        return None
    identity = _identity([match for _, match in found])
    return download.layout("Brightspace download", found, identity, partial(_work, identity))


def _match(child: TreeEntry) -> re.Match[str] | None:
    return _NAME.fullmatch(child.name) if child.kind is Kind.FOLDER else None


def _identity(matches: Sequence[re.Match[str]]) -> Callable[[re.Match[str]], str]:
    """Return what tells who a folder is of."""
    for own, others in (("first", "second"), ("second", "first")):
        names = {(match[own], match["name"]) for match in matches}
        people = {match[own] for match in matches}
        if len({match[others] for match in matches}) == 1 < len(people) == len(names):
            return lambda match, own=own: f"brightspace:{match[own]}"  # type: ignore[misc]
    return lambda match: f"brightspace:{match['first']}-{match['second']} {match['name']}"


def _work(who: Callable[[re.Match[str]], str], uploads: Sequence[Upload]) -> Work:
    identity = who(uploads[0][1])
    times = [_time(match) for _, match in uploads]
    newest, match = uploads[times.index(max(times))]
    notes = []
    if len(uploads) > 1:
        notes.append(f"The newest of {len(uploads)} submissions was read.")
    if times.count(max(times)) > 1:
        newest = gathered(newest.name, (), fault="is there more than once at one time; keep one")
    member = identity.partition(":")[2]
    older = tuple(entry.name for entry, _ in uploads if entry.name != newest.name)
    return Work(
        identity,
        match["name"],
        newest,
        members=(member,),
        notes=tuple(notes),
        unused=older,
        parts=tuple(entry.name for entry, _ in uploads),
    )


def _time(match: re.Match[str]) -> datetime:
    """Return when a folder was handed in; long ago if its date is in words of another language."""
    text = f"{match['day'].replace(',', '')} {match['hour'].zfill(4)}{match['half'] or ''}"
    for order in ("%b %d %Y", "%B %d %Y", "%d %b %Y", "%d %B %Y"):
        for hour in ("%I%M %p", "%H%M"):
            try:
                return datetime.strptime(text, f"{order} {hour}")
            except ValueError:
                continue
    return datetime.min


PLATFORM = Platform(_look, may_hold=lambda name, part: _match(part) is not None)
