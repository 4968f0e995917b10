"""The language that the trusted and the untrusted side speak. Both sides run what is here.

A message is a frame: two lengths, a header of JSON, and the bytes of tensors, whose dtypes and
shapes the header tells. The bytes lie in memory that both sides see. Nothing in a message is ever
run: no pickle, no class names that are looked up, no attribute names that are set. Whatever arrives
is measured before it is read, and any deviation is a `ProtocolError`.

Values are written as JSON. What JSON doesn't know is an object with a single letter:

    {"t": 3, ...}   the frame's tensor 3           {"l": [...]}  a list    {"u": [...]}  a tuple
    {"m": [...]}    a tensor's form without data   {"s": [...]}  a Size    {"d": [...]}  a dict
    {"y": "int64"}  a dtype                        {"v": "cpu"}  a device
    {"f": "nan"}    a number that isn't finite

and each side may add letters of its own. Where a list, tuple or dict is of a class of the student's
(a NamedTuple), the class's name stands beside it as "as", and the fields' names as "names".

- `memory` is what both sides see
- `frames` sends and receives messages
- `values` writes values as JSON and reads them back
- `tensors` knows how tensors are told and compared
- `modules` lists what a module holds
- `checks` are what a receiver asks of all that it reads
"""

from __future__ import annotations

from typing import Any

MAX_HEADER = 1 << 20
MAX_PAYLOAD = 256 << 20
MAX_BUILT = 512 << 20
MAX_TENSORS = 4096
MAX_DEPTH = 40
MAX_DIMENSIONS = 16
MAX_TEXT = 4000
MAX_NAME = 100
MAX_FIELDS = 100
MAX_HANDLES = 1000
MAX_ATTEMPTS = 5
MAX_NUMBER = 1 << 62

FILE = "problem.py"
MODULE = "problem_"
"""The file and module name that the student's code sees."""

Header = dict[str, Any]
Packed = Any


class ProtocolError(Exception):
    """What arrived isn't a message of this protocol."""


class Unsendable(Exception):  # noqa: N818  (it is a finding about a value)
    """A value can't be sent. The text completes "a value that can't be sent: ..."."""


class Closed(Exception):  # noqa: N818  (an event)
    """The other side closed the connection."""
