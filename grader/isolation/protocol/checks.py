"""Small checks that a receiver makes of what it reads. Each raises ProtocolError when it fails."""

from __future__ import annotations

import math
import re
from typing import Any

from grader.isolation.protocol import MAX_DIMENSIONS, MAX_NAME, MAX_TEXT, Packed, ProtocolError

_MEMBER = re.compile(r"[A-Za-z0-9_]{1,100}")


def items(packed: Packed, count: int | None = None) -> list[Any]:
    """Return `packed` if it is a list, of `count` items if that is given."""
    if type(packed) is not list or count not in (None, len(packed)):
        raise ProtocolError("a list was expected")
    return packed


def texts(packed: Packed) -> list[str]:
    """Return `packed` if it is a list of texts."""
    found = items(packed)
    if any(type(text) is not str for text in found):
        raise ProtocolError("a text was expected")
    return found


def index(packed: Packed, count: int) -> int:
    """Return `packed` if it is a number from 0 to `count` - 1."""
    if type(packed) is not int or not 0 <= packed < count:
        raise ProtocolError("a number is out of range")
    return packed


def int64(number: int) -> int:
    """Return `number` if it has 64 bits at most."""
    # Of keys with the same hash there are a few among the numbers of 64 bits; beyond, any number.
    if not -(1 << 63) <= number < 1 << 63:
        raise ProtocolError("an integer of more than 64 bits")
    return number


def name_in(packed: Packed, names: Any) -> str:
    """Return `packed` if it is one of `names`."""
    if type(packed) is not str or packed not in names:
        raise ProtocolError("a name isn't known")
    return packed


def identifier(packed: Packed) -> str:
    """Return `packed` if it could be a name in a program."""
    if type(packed) is not str or len(packed) > MAX_NAME or not packed.isidentifier():
        raise ProtocolError("a name isn't an identifier")
    return packed


def member(packed: Packed) -> str:
    """Return `packed` if it could be the name of a parameter, buffer or child of a module."""
    if type(packed) is not str or not _MEMBER.fullmatch(packed):
        raise ProtocolError("a member's name isn't one")
    return packed


def sizes(packed: Packed) -> list[int]:
    """Return `packed` if it is a tensor's shape."""
    found = items(packed)
    if len(found) > MAX_DIMENSIONS:
        raise ProtocolError("a shape has too many dimensions")
    for size in found:
        index(size, 1 << 40)
    if math.prod(found) >= 1 << 50:
        raise ProtocolError("a shape is too large")
    return found


_WITHOUT_ENDS_AND_TABS = str.maketrans("", "", "\n\t")


def clean_text(text: str, limit: int = MAX_TEXT) -> str:
    """Cut a text and replace what could control a terminal; line ends and tabs stay."""
    cut = text[:limit]
    if cut.translate(_WITHOUT_ENDS_AND_TABS).isprintable():
        return cut
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in cut
    )
