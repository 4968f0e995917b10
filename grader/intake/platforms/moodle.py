"""Moodle: `Ada Lovelace_<id>_assignsubmission_file_`, as folders or before each file's name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.intake.layout import Layout, Work, handed_in, typed_online
from grader.intake.platforms.download import Download, Platform, children_or_itself
from grader.intake.problem_names import Problems
from grader.intake.tree import TreeEntry

_END = r"_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?"
_START = r"(?P<name>(?:(?!_assignsubmission_).)+?)"
_NAMES = (
    re.compile(_START + r"_(?P<id>\d+)" + _END, re.DOTALL),
    # Those who are in no group are one, which has no number.
    re.compile(_START + r"(?P<id>)" + _END, re.DOTALL),
)

Upload = tuple[TreeEntry, re.Match[str]]
"""A file or folder, and what its name says."""


def _look(download: Download, problems: Problems) -> Layout | None:
    students: dict[tuple[str, str], list[Upload]] = {}
    others: list[TreeEntry] = []
    for child in download.children:
        if match := _match(child.name):
            students.setdefault((match["name"], match["id"]), []).append((child, match))
        else:
            others.append(child)
    if len(others) * 2 >= len(download.children):
        return None
    works = [_work(name, id, found) for (name, id), found in students.items()]
    return Layout("Moodle download", works).with_others(others)


def _match(name: str) -> re.Match[str] | None:
    return next((match for pattern in _NAMES if (match := pattern.fullmatch(name))), None)


def _uploaded_as(name: str) -> Sequence[str]:
    match = _match(name)
    return (match["file"],) if match and match["file"] else ()


def _work(name: str, id: str, found: Sequence[Upload]) -> Work:
    entries: list[TreeEntry] = []
    typed = []
    for child, match in found:
        if match["kind"] != "file":
            typed.append(match["kind"])
        elif match["file"]:
            entries.append(child.renamed(match["file"]))
        else:
            entries += children_or_itself(child)
    return Work(
        f"moodle:{id or f'group {name}'}",
        f"{name} {id}" if name in ("Participant", "Group") else name,
        handed_in(name, entries),
        # Moodle's grading worksheet calls everybody so, whether or not names are shown.
        members=(f"Participant {id}",) if id else (name,),
        notes=tuple(map(typed_online, typed)),
        unused=tuple(typed),
        parts=tuple(child.name for child, _ in found),
    )


PLATFORM = Platform(
    _look, uploaded_as=_uploaded_as, may_hold=lambda name, part: _match(part.name) is not None
)
