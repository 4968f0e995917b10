"""Arguments that a call changed: which they are, and how a test is made to see it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from grader.isolation.protocol import Packed
from grader.isolation.protocol.checks import identifier, index, items


def changed_arguments(packed: Packed, arguments: list[Tensor]) -> list[tuple[Tensor, str]]:
    """Return the arguments that the worker says were changed, with their names or numbers.

    Raises:
        ProtocolError: that can't be read.
    """
    found = []
    for entry in items(packed):
        number, name = items(entry, 2)
        place = index(number, len(arguments))
        if not (type(name) is str and name.isdigit() and len(name) < 4):
            name = identifier(name) if name else str(place + 1)
        found.append((arguments[place], name))
    return found


def mark(argument: Tensor) -> bool:
    """Make a changed argument differ from what it was, in a way that nobody can make use of.

    One entry, the smallest, moves by one unit in its last place: `torch.equal` sees it, no
    comparison with a tolerance does. Returns False for a tensor that has no such entry.
    """
    values = argument.detach()
    usable = values.isfinite() & (values != 0)
    if not usable.any():
        usable = values.isfinite()  # then a zero becomes the smallest number
    if not values.is_floating_point() or not usable.any():
        return False
    sizes = torch.where(usable, values.abs().double(), math.inf)
    place = tuple(int(i) for i in torch.unravel_index(sizes.argmin(), values.shape))
    with torch.no_grad():
        before = values[place].clone()
        # A relative step of two units: rounding in half precision must not lose it.
        form = torch.finfo(values.dtype)
        values[place] = before * (1 + 2 * form.eps) if before else form.tiny
    return bool(values[place] != before)
