"""How a request ended: what the worker drew, what it cost, what was raised."""

from __future__ import annotations

from typing import NamedTuple

import torch

from grader.cost import Cost
from grader.isolation.protocol import MAX_NUMBER, Header
from grader.isolation.protocol.checks import clean_text, index, items, name_in, texts
from grader.isolation.proxy.exceptions import read_exception


class Outcome(NamedTuple):
    """What an answer says of its end. All of it is the worker's word.

    Attributes:
        called: the first forbidden function that was called, or None.
        unsendable: what can't be told of the value, or None.
        exception: what the student's code raised, or None.
    """

    called: str | None
    unsendable: str | None
    exception: Exception | None


def read_outcome(answer: Header, forbidden: tuple[str, ...], file: str) -> Outcome:
    """Return how a request ended.

    Args:
        answer: the worker's.
        forbidden: the functions that may not be called.
        file: the student's, as tracebacks name it.

    Raises:
        ProtocolError: that isn't to be read from it.
    """
    called = answer.get("called")
    if called is not None:
        name_in(called, forbidden)
    unsendable = answer.get("unsendable")
    if unsendable is not None:
        unsendable = clean_text(texts([unsendable])[0], 200)
    error = answer.get("error")
    return Outcome(called, unsendable, None if error is None else read_exception(error, file))


def draw(answer: Header, generators: list[torch.Generator]) -> None:
    """Draw from what the worker drew from, so that the next numbers are other ones."""
    moved = [bool(flag) for flag in items(answer.get("generators", []))]
    if answer.get("moved"):
        torch.rand(1)
    for generator, drawn in zip(generators, moved, strict=bool(moved)):
        if drawn:
            torch.rand(1, generator=generator)


def count(answer: Header, costs: list[Cost]) -> None:
    """Add what the worker counted, which is its own word."""
    if costs:
        counted = [index(number, MAX_NUMBER) for number in items(answer["cost"], 3)]
        for cost in costs:
            cost.add(*counted)
