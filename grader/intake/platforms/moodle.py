"""Moodle: `Ada Lovelace_<id>_assignsubmission_file_`, as folders or before each file's name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.intake.layout import Layout, Work, handed_in, typed_online
from grader.intake.platforms.download import (
    Download,
    Platform,
    Upload,
    children_or_itself,
    first_match,
)
from grader.intake.problem_names import Problems
from grader.intake.tree import TreeEntry

_END = r"_assignsubmission_(?P<kind>[a-z]+)(?:_(?P<file>.*))?"
_START = r"(?P<name>(?:(?!_assignsubmission_).)+?)"
_NAMES = (
    re.compile(_START + r"_(?P<id>\d+)" + _END, re.DOTALL),
    # Those who are in no group are one, which has no number.
    re.compile(_START + r"(?P<id>)" + _END, re.DOTALL),
)


def _look(download: Download, problems: Problems) -> Layout | None:
    if not (found := download.fitting(lambda child: first_match(_NAMES, child.name))):
        return None
    return download.layout("Moodle download", found, lambda m: (m["name"], m["id"]), _work)


def _work(found: Sequence[Upload]) -> Work:
    name, id = found[0][1]["name"], found[0][1]["id"]
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
    _look,
    may_hold=lambda name, part: first_match(_NAMES, part.name) is not None,
)
