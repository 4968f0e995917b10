"""Where a member's name says that it stands, and which names are refused: those that lead out."""

from __future__ import annotations

import re
import unicodedata

_LONGEST_NAME = 255
_MOST_MARKS = 30  # which Unicode calls safe: to put more in order takes the square of their number


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
    if len(part) > _LONGEST_NAME:
        return "is too long"
    return f"has more than {_MOST_MARKS} marks on one letter" if _has_too_many(part) else ""


def _has_too_many(part: str) -> bool:
    """Tell whether a name has so many marks in a row, such as accents, that it is slow to read."""
    if part.isascii() or len(part) <= _MOST_MARKS:
        return False
    row = 0
    for letter in part:
        row = row + 1 if unicodedata.combining(letter) else 0
        if row > _MOST_MARKS:
            return True
    return False
