"""Gradescope's `submission_metadata.yml`, which says whose each folder is, and when it came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from grader.intake.platforms.times import iso_time
from grader.intake.tree import Refused

METADATA = "submission_metadata.yml"
"""In which the export says whose each folder is."""

MAX_BYTES = 100_000_000
"""The most bytes that are read of it; it holds the outputs of gradings too."""

_MAX_YAML = 5_000_000  # of which the names of 20,000 students are left when these are cut out
_KEPT = (":submitters:", ":created_at:")


@dataclass(frozen=True)
class Submitter:
    """One of those who handed in together.

    Attributes:
        name: the real name, if it is said.
        member: what a gradebook knows the person by.
        account: what no other person has; empty when there is only a name.
    """

    name: str
    member: str
    account: str


@dataclass(frozen=True)
class Handed:
    """What is said of one folder.

    Attributes:
        people: who handed in.
        time: when, in ISO 8601; empty when it is not said.
    """

    people: tuple[Submitter, ...] = ()
    time: str = ""


def read_metadata(content: bytes) -> dict[str, Handed]:
    """Return what is said of each folder.

    Raises:
        Refused: it is not what Gradescope writes.
    """
    try:
        text = _only_kept(content.decode("utf-8-sig"))
        if len(text) > _MAX_YAML:
            raise Refused(f"lists more than {_MAX_YAML:,} characters of names")
        # BaseLoader is the strictest there is: it makes text, lists and mappings, nothing else.
        data = yaml.load(text, Loader=yaml.BaseLoader)
        return {key: _handed(value) for key, value in data.items()}
    except (yaml.YAMLError, ValueError, AttributeError, TypeError, RecursionError):
        raise Refused("is not a list of submissions as Gradescope writes it") from None


def _only_kept(text: str) -> str:
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
            keep, level = content.startswith(_KEPT), indent
        if keep:
            kept.append(line)
    return "\n".join(kept)


def _handed(value: Any) -> Handed:
    if not isinstance(value, dict):
        return Handed()
    people = value.get(":submitters")
    time = value.get(":created_at")
    return Handed(
        tuple(_person(who) for who in people) if isinstance(people, list) else (),
        iso_time(time) if isinstance(time, str) else "",
    )


def _person(who: Any) -> Submitter:
    name, email, sid = (str(who.get(key) or "") for key in (":name", ":email", ":sid"))
    return Submitter(name or email or sid, email or sid or name, email.lower() or sid)
