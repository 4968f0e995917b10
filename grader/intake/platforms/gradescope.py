"""Gradescope's export: `submission_123/` and so on, and `submission_metadata.yml` says whose."""

from __future__ import annotations

from typing import Any

import yaml

from grader.intake.did_you_mean import did_you_mean
from grader.intake.layout import Layout, Work, unmatched_file
from grader.intake.platforms.download import Download, Platform
from grader.intake.problem_names import Problems
from grader.intake.tree import Entry, Refused, gathered

METADATA = "submission_metadata.yml"
"""In which the export says whose each folder is."""

_MAX_BYTES = 100_000_000  # it holds the outputs of gradings too
_MAX_YAML = 5_000_000  # of which the names of 20,000 students are left when these are cut out

People = list[tuple[str, str]]
"""The names of those who handed in together, each with what a gradebook knows the person by."""


def _look(download: Download, problems: Problems) -> Layout | None:
    children = {child.name: child for child in download.children}
    if METADATA not in children:
        return None
    metadata = children.pop(METADATA)
    layout = Layout("Gradescope export", [])
    people: dict[str, People] = {}
    try:
        people = _submitters(metadata.read(_MAX_BYTES))
    except Refused as refused:
        layout.notes = [f"{refused.sentence(METADATA)} Submissions go by their folders' names."]
    absent = [key for key in people if key not in children]
    for name, child in children.items():
        if child.is_plain_file:
            layout.unmatched.append(unmatched_file(name, absent))
        else:
            known = name in people or not people
            note = f"{name!a} is not in {METADATA}.{did_you_mean(name, absent)}"
            layout.works.append(_work(child, people.get(name, []), "" if known else note))
    for key in absent:
        note = f"{key!a} is in {METADATA}, but there is no such folder."
        layout.works.append(_work(gathered(key, ()), people[key], note))
    return layout


def _work(folder: Entry, people: People, note: str) -> Work:
    name = " + ".join(name for name, _ in people) or folder.name
    members = tuple(id for _, id in people)
    notes = (note,) if note else ()
    return Work(name, folder, members, notes=notes, id=folder.name.removeprefix("submission_"))


def _submitters(metadata: bytes) -> dict[str, People]:
    """Return names and addresses of those who handed in each folder.

    Raises:
        Refused: it is not what Gradescope writes.
    """
    try:
        text = _only_submitters(metadata.decode("utf-8-sig"))
        if len(text) > _MAX_YAML:
            raise Refused(f"lists more than {_MAX_YAML:,} characters of names")
        # BaseLoader is the strictest there is: it makes text, lists and mappings, nothing else.
        data = yaml.load(text, Loader=yaml.BaseLoader)
        return {key: [_person(who) for who in _listed(value)] for key, value in data.items()}
    except (yaml.YAMLError, ValueError, AttributeError, TypeError, RecursionError):
        raise Refused("is not a list of submissions as Gradescope writes it") from None


def _only_submitters(text: str) -> str:
    """Return the YAML without the results, which are long and hold what students printed."""
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
            keep, level = content.startswith(":submitters:"), indent
        if keep:
            kept.append(line)
    return "\n".join(kept)


def _listed(value: Any) -> list[Any]:
    submitters = value.get(":submitters") if isinstance(value, dict) else None
    return submitters if isinstance(submitters, list) else []


def _person(who: Any) -> tuple[str, str]:
    """Return a name and what a gradebook knows the person by."""
    name, email, sid = (str(who.get(key) or "") for key in (":name", ":email", ":sid"))
    return name or email or sid, email or sid or name


PLATFORM = Platform(_look, lists={METADATA: _MAX_BYTES})
