"""Asks ahead of a test what it asked that was passed, and has the answers if the test does run.

As soon as an answer is another one than in all precedents, the test runs. What was answered until
then is what it gets first: nothing is asked twice, so code that remembers its calls can't tell the
difference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from torch import Tensor

from grader.errors import CannotLoad
from grader.isolation.precedents import (
    MOST_ANSWERED,
    Answered,
    Asked,
    Contents,
    HoldsAll,
    Precedent,
    Reply,
)
from grader.isolation.protocol import Packed
from grader.isolation.protocol.tensors import same


class _Heard(NamedTuple):
    """A request that was sent ahead, where its tensors lie, and what an `Answered` is made of."""

    asked: Asked
    placed: list[Packed]
    text: bytes
    payload: bytes | bytearray


class Ahead:
    """What was asked ahead of a test, and not heard by it yet.

    Args:
        ask: sends a request; returns where its tensors lie, and the answer; raises CannotLoad if
            none comes.
        checked: gives a context in which an error, and the time, are the worker's.
        holds_all: tells whether places in the worker's memory still have the bytes of tensors.
    """

    def __init__(
        self,
        ask: Callable[[Asked], tuple[list[Packed], Reply]],
        checked: Callable[[], AbstractContextManager[None]],
        holds_all: HoldsAll,
    ) -> None:
        self._ask = ask
        self._checked = checked
        self._holds_all = holds_all
        self._answers: deque[_Heard | CannotLoad] = deque()
        self._contents = Contents()

    def __bool__(self) -> bool:
        """Return whether there is an answer that the test has not heard."""
        return bool(self._answers)

    def agrees(self, ways: Sequence[Precedent]) -> bool:
        """Ask as long as the answers are those of a precedent; return whether they are, to the end.

        Args:
            ways: precedents of the test that has just begun.
        """
        answers: deque[_Heard | CannotLoad] = deque()
        while ways and len(answers) < len(ways[0].steps):
            ways = self._still_agreeing(ways, answers)
        if not ways:
            self._answers, self._contents = answers, Contents()
        return bool(ways)

    def _still_agreeing(
        self, ways: Sequence[Precedent], answers: deque[_Heard | CannotLoad]
    ) -> Sequence[Precedent]:
        """Ask what comes next and add the answer; return the precedents in which it is the same."""
        number = len(answers)
        asked = ways[0].steps[number].asked
        agreeing: Sequence[Precedent] = []
        try:
            placed, reply = self._ask(asked)
            self._contents.put(placed, asked.tensors)
            with self._checked():  # a copy may be 256 MB
                if reply.size <= MOST_ANSWERED and self._contents.are_held(self._holds_all):
                    there = (way for way in ways if len(way.steps) > number)
                    agreeing = [way for way in there if reply.is_same(way.steps[number].answer)]
                known = agreeing[0].steps[number].answer.payload if agreeing else None
                payload = reply.payload if known is None else known
        except CannotLoad as failure:
            answers.append(failure.afresh())
            return []
        answers.append(_Heard(asked, placed, reply.text, payload))
        return agreeing

    def placed(self) -> list[Packed]:
        """Return where the tensors of the test's next request lie, which was sent ahead.

        Raises:
            CannotLoad: no answer came to it.
        """
        answered = self._answers[0]
        if isinstance(answered, CannotLoad):
            self.forget()
            raise answered
        self._contents.put(answered.placed, answered.asked.tensors)
        return answered.placed

    def held(self, place: int, tensor: Tensor) -> bool:
        """Return whether a place had the bytes of a tensor before the next request was sent."""
        return same(tensor, self._contents.at(place))

    def hear(self, asked: Asked) -> Answered | None:
        """Return the answer to the test's next request; None if another one was sent ahead.

        Args:
            asked: what the test asks.
        """
        heard = self._answers.popleft()
        if isinstance(heard, CannotLoad) or not heard.asked.is_same(asked):
            self.forget()
            return None
        payload = heard.payload  # a precedent's own bytes are not for a test to write on
        return Answered(heard.text, bytearray(payload) if isinstance(payload, bytes) else payload)

    def forget(self) -> None:
        """Forget what the test has not heard."""
        self._answers.clear()
