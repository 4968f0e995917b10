"""Objects of the student's classes that the trusted side may hold and hand back."""

from __future__ import annotations

from collections.abc import Iterator
from types import MemberDescriptorType
from typing import Any

from grader.isolation.protocol import MAX_FIELDS, MAX_NAME, MAX_TEXT, MODULE, Packed, Unsendable
from grader.isolation.protocol.values import Packer


def is_students(value: object) -> bool:
    """Return whether a value is an object of a class that stands in the student's file."""
    return any(cls.__module__ == MODULE for cls in type(value).__mro__)


def plain_fields(value: object) -> list[Packed]:
    """Return name and value of an object's plain fields, the defaults of its class among them.

    None of the student's code is run for that, so a property is no field, nor is what is too long.
    """
    found: dict[str, Packed] = {}
    for name, field in _members(value):
        if len(found) >= MAX_FIELDS:
            break
        if _is_public(name):
            found.pop(name, None)
            try:
                found[name] = _packed(field)
            except Unsendable:
                continue
    return [[name, packed] for name, packed in found.items()]


def numbers_of(module: object) -> list[Packed]:
    """Return name and value of what a module's own dictionary has of plain numbers and texts.

    To read them runs none of the student's code, unless a class says otherwise; then it is none.
    """
    kind = type(module)
    if kind.__getattribute__ is not object.__getattribute__:
        return []
    found = [
        [name, value]
        for name, value in vars(module).items()
        if type(value) in _NUMBERS and _is_public(name)
    ]
    own = [each for each in found if not any(each[0] in vars(cls) for cls in kind.__mro__)]
    return [each for each in own if _fits(each[1])][:MAX_FIELDS]


_NUMBERS = (int, float, bool, str)


def _fits(value: object) -> bool:
    try:
        return bool(_packed(value) == value)  # not for what has a mark, such as infinity
    except Unsendable:
        return False


def _members(value: object) -> Iterator[tuple[Any, object]]:
    for cls in reversed(type(value).__mro__):
        if cls.__module__ == MODULE:
            for name, member in [*vars(cls).items()]:
                if isinstance(member, MemberDescriptorType):  # a slot
                    yield name, getattr(value, name, member)
                else:
                    yield name, member
    yield from [*getattr(value, "__dict__", {}).items()]


def _is_public(name: object) -> bool:
    if type(name) is not str or name.startswith("_"):
        return False
    return len(name) <= MAX_NAME and name.isidentifier()


def _packed(field: object) -> Packed:
    if field is not None and not isinstance(field, int | float | str):
        raise Unsendable("a field that isn't plain")
    if isinstance(field, str) and len(field) > MAX_TEXT:
        raise Unsendable("a field that is too long")
    return Packer().pack(field)
