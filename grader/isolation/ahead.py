"""Asks ahead of a test what it asked that was passed, and has the answers if the test does run.

As soon as an answer is another one than in all precedents, the test runs. What was answered until
then is what it gets first: nothing is asked twice, so code that remembers its calls can't tell the
difference.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from grader.errors import CannotLoad
from grader.isolation.precedents import MOST_ANSWERED, Contents, Precedent, Step, told
from grader.isolation.protocol import Header, Packed
from grader.isolation.protocol.tensors import same


class Answered(NamedTuple):
    """A request that was sent ahead, and what was answered.

    Attributes:
        step: what was asked.
        placed: where the request's tensors lie, as it says.
        answer: the answer's header.
        payload: the bytes of its tensors.
    """

    step: Step
    placed: list[Packed]
    answer: Header
    payload: bytearray


class Ahead:
    """What was asked ahead of a test, and not heard by it yet.

    Args:
        ask: sends a request with tensors; returns the answer's header, and the bytes of its
            tensors; raises CannotLoad if none comes.
        holds: tells whether a place in the worker's memory still has the bytes of a tensor.
    """

    def __init__(
        self,
        ask: Callable[[Header, list[Tensor]], tuple[Header, bytearray]],
        holds: Callable[[int, Tensor], bool],
    ) -> None:
        self._ask = ask
        self._holds = holds
        self._answers: deque[Answered | CannotLoad] = deque()
        self._contents = Contents()

    def __bool__(self) -> bool:
        """Return whether there is an answer that the test has not heard."""
        return bool(self._answers)

    def agrees(self, ways: Sequence[Precedent]) -> bool:
        """Ask as long as the answers are those of a precedent; return whether they are, to the end.

        Args:
            ways: precedents of the test that has just begun.
        """
        answers: deque[Answered | CannotLoad] = deque()
        while ways and len(answers) < len(ways[0].steps):
            ways = self._still_agreeing(ways, answers)
        if not ways:
            self._answers, self._contents = answers, Contents()
        return bool(ways)

    def _still_agreeing(
        self, ways: Sequence[Precedent], answers: deque[Answered | CannotLoad]
    ) -> Sequence[Precedent]:
        """Ask what comes next and add the answer; return the precedents in which it is the same."""
        number = len(answers)
        step = ways[0].steps[number]
        request = step.header()
        try:
            answer, payload = self._ask(request, step.tensors)
        except CannotLoad as failure:
            answers.append(failure.afresh())
            return []
        answers.append(Answered(step, request["placed"], answer, payload))
        self._contents.put(request["placed"], step.tensors)
        if len(payload) > MOST_ANSWERED or not self._contents.are_held(self._holds):
            return []
        said = told(answer, payload)
        return [w for w in ways if len(w.steps) > number and w.steps[number].answer == said]

    def placed(self) -> list[Packed]:
        """Return where the tensors of the test's next request lie, which was sent ahead.

        Raises:
            CannotLoad: no answer came to it.
        """
        answered = self._answers[0]
        if isinstance(answered, CannotLoad):
            self.forget()
            raise answered
        self._contents.put(answered.placed, answered.step.tensors)
        return answered.placed

    def held(self, place: int, tensor: Tensor) -> bool:
        """Return whether a place had the bytes of a tensor before the next request was sent."""
        return same(tensor, self._contents.at(place))

    def hear(self, request: Header, tensors: list[Tensor]) -> tuple[Header, bytearray] | None:
        """Return the answer to the test's next request; None if another one was sent ahead.

        Args:
            request: what the test asks.
            tensors: the request's.
        """
        answered = self._answers.popleft()
        if isinstance(answered, CannotLoad) or not answered.step.asks(request, tensors):
            self.forget()
            return None
        return answered.answer, answered.payload

    def forget(self) -> None:
        """Forget what the test has not heard."""
        self._answers.clear()
