"""Arguments that a call changed: which they are, and how a test is made to see it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from grader.batch import Call
from grader.isolation.connection import Connection
from grader.isolation.protocol import Header
from grader.isolation.protocol.checks import index, items
from grader.isolation.proxy.values import PutIn, RequestPacker


def changed_arguments(
    connection: Connection, answer: Header, packer: RequestPacker, places: list[int]
) -> list[Tensor]:
    """Return the arguments that a call changed.

    That their numbers did is seen where they lie. That one got another form, or other memory, is
    what the worker says.

    Args:
        connection: to the worker.
        answer: the answer to the call.
        packer: knows the arguments.
        places: where the request's tensors lie.

    Raises:
        ProtocolError: the answer can't be read.
    """
    moved = {index(number, len(packer.arguments)) for number in items(answer["moved_away"])}
    return [
        argument
        for number, (argument, sent) in enumerate(packer.arguments)
        if number in moved or not connection.holds(places[sent], packer.tensors[sent])
    ]


def mark_lists(answer: Header, packer: RequestPacker) -> None:
    """Make the lists that a call changed, as the worker says, differ from what they were.

    What the call put into them stays there. Here something is added that can't be used.

    Args:
        answer: the answer to the call.
        packer: knows the lists.

    Raises:
        ProtocolError: the answer can't be read.
    """
    lists = packer.lists
    for number in {index(number, len(lists)) for number in items(answer["changed_lists"])}:
        lists[number].append(PutIn())


def name_of(argument: Tensor, calls: Sequence[Call], parameters: list[str]) -> str:
    """Return the name of an argument, or its number.

    Args:
        argument: one of a call's, or in one of them.
        calls: those that it may belong to.
        parameters: the function's, as far as they are known.
    """
    names: dict[int, str] = {}
    for call in calls:
        named: dict[str, Any] = {str(number): value for number, value in enumerate(call.args, 1)}
        named |= dict(zip(parameters, call.args, strict=False)) | call.kwargs
        names |= {id(value): name for name, value in named.items()}
    return names.get(id(argument), "")


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
