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
from grader.isolation.precedents import Precedent, Step, told
from grader.isolation.protocol import Header, Packed
from grader.isolation.protocol.tensors import same


class Answered(NamedTuple):
    """What came of a request that was sent ahead.

    Attributes:
        step: what was asked.
        placed: where the request's tensors lie, as it says.
        answer: the answer's header.
        payload: the bytes of its tensors.
        failure: what is to be raised, where no answer came.
    """

    step: Step
    placed: list[Packed] = []
    answer: Header = {}
    payload: bytearray = bytearray()
    failure: Exception | None = None


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
        self._answers: deque[Answered] = deque()
        self._lying: dict[int, Tensor] = {}  # what the worker needs, by its place

    def __bool__(self) -> bool:
        """Return whether there is an answer that the test has not heard."""
        return bool(self._answers)

    def agrees(self, ways: Sequence[Precedent]) -> bool:
        """Ask as long as the answers are those of a precedent; return whether they are, to the end.

        Args:
            ways: precedents of the test that has just begun.
        """
        answers: deque[Answered] = deque()
        while ways and len(answers) < len(ways[0].steps):
            ways = self._still_agreeing(ways, answers)
        if not ways:
            self._answers, self._lying = answers, {}
        return bool(ways)

    def _still_agreeing(
        self, ways: Sequence[Precedent], answers: deque[Answered]
    ) -> Sequence[Precedent]:
        """Ask what comes next, add the answer, and return the precedents in which it is the same.

        All that lies in the memory has to be as it was, which is more than a test would look at.
        """
        number = len(answers)
        step = ways[0].steps[number]
        request = step.header()
        try:
            answer, payload = self._ask(request, step.tensors)
        except CannotLoad as failure:
            answers.append(Answered(step, failure=failure.afresh()))
            return []
        answers.append(Answered(step, request["placed"], answer, payload))
        self._put(answers[-1])
        untouched = all(map(self._holds, self._lying, self._lying.values()))
        for place in answer["released"]:
            self._lying.pop(place, None)
        if not untouched:
            return []
        said = told(answer, payload)
        return [w for w in ways if len(w.steps) > number and w.steps[number].answer == said]

    def placed(self) -> list[Packed]:
        """Return where the tensors of the test's next request lie, which was sent ahead.

        Raises:
            CannotLoad: no answer came to it.
        """
        answered = self._answers[0]
        if answered.failure is not None:
            self._answers.clear()
            raise answered.failure
        self._put(answered)
        return answered.placed

    def held(self, place: int, tensor: Tensor) -> bool:
        """Return whether a place had the bytes of a tensor before the next request was sent."""
        return same(tensor, self._lying[place])

    def hear(self, request: Header, tensors: list[Tensor]) -> tuple[Header, bytearray] | None:
        """Return the answer to the test's next request; None if another one was sent ahead.

        Args:
            request: what the test asks.
            tensors: the request's.
        """
        answered = self._answers.popleft()
        if not answered.step.asks(request, tensors):
            self._answers.clear()
            return None
        return answered.answer, answered.payload

    def forget(self) -> None:
        """Forget what the test has not heard."""
        self._answers.clear()

    def _put(self, answered: Answered) -> None:
        places = [place for _, _, place in answered.placed]
        self._lying |= zip(places, answered.step.tensors, strict=True)
