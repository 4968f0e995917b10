"""Where a member's name says that it stands, and which names are refused: those that lead out."""

from __future__ import annotations

import re

_LONGEST_NAME = 255


def split_name(name: str) -> tuple[list[str], str]:
    """Return the parts of a member's name up to the first that is wrong, and what is wrong."""
    if name.startswith("/") or re.match("[A-Za-z]:", name):
        return [], "is absolute"
    parts: list[str] = []
    for part in name.split("/"):
        if wrong := _wrong(part):
            return parts, wrong
        if part not in ("", "."):
            parts.append(part)
    return parts, ""


def _wrong(part: str) -> str:
    if part == "..":
        return "leads out of its folder"
    if "\\" in part or "\0" in part:
        return "has a backslash" if "\\" in part else "has a zero byte"
    return "is too long" if len(part) > _LONGEST_NAME else ""
