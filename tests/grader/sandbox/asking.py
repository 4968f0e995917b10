"""Evaluate expressions about a student's file in a worker.

Both the worker and the tests import this file.
"""

from __future__ import annotations

import functools
import json
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

if TYPE_CHECKING:
    from grader.sandbox.recorder import SubmissionBudget
    from grader.sandbox.sandbox import Sandbox


# Used by the worker


def load(folder: str) -> Callable[[bytes, Any], Iterator[bytes]]:
    """Return a function that evaluates expressions, which it receives as JSON.

    In an expression, `problem` is the student's module.
    """
    return _evaluate_all


def _evaluate_all(order: bytes, loaded: Any) -> Iterator[bytes]:
    error = loaded.error and [type(loaded.error).__name__, str(loaded.error)]
    yield json.dumps({"error": error, "attempts": loaded.attempts}).encode()
    names = {"problem": loaded.module, "torch": torch}
    for expression in json.loads(order):
        loaded.called.clear()
        answer = _evaluate(expression, names)
        yield json.dumps(answer | {"called": loaded.called}, default=repr).encode()


def _evaluate(expression: str, names: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": eval(expression, names)}
    except Exception as error:
        return {"raised": [type(error).__name__, str(error)]}


# Used by tests


class Raised(NamedTuple):
    """An exception in a worker: the name of its type, and its text."""

    type: str
    text: str


class Asked:
    """A worker that evaluates expressions one after the other. Leaving the context ends the worker.

    Args:
        sandbox: the worker's sandbox.
        source: the student's file.
        expressions: the expressions to evaluate.
        forbidden: the functions that the file may not call.
        budget: the time limit.

    Attributes:
        recorder: the connection to the worker.
        error: the exception that loading the file raised.
        attempts: the forbidden actions that the file tried while it was loaded.
        called: a list with the first forbidden function that the latest expression called. If it
            called none, the list is empty.

    Raises:
        WorkerFailure: the worker failed while it loaded the file.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        source: str,
        *expressions: str,
        forbidden: tuple[str, ...] = (),
        budget: SubmissionBudget | None = None,
    ) -> None:
        order, file = json.dumps(expressions).encode(), textwrap.dedent(source).encode()
        self.recorder = sandbox.record(
            _preloaded(), order, file, forbidden, budget or sandbox.budget()
        )
        loaded = self._receive()
        self.error = loaded["error"] and Raised(*loaded["error"])
        self.attempts = [(kind, name) for kind, name in loaded["attempts"]]
        self.called: list[str] = []

    def __enter__(self) -> Self:
        """Return the worker, which has already started."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the worker."""
        self.recorder.close()

    def next(self) -> Any:
        """Receive the next answer: the value of an expression, or the exception that it raised.

        Raises:
            WorkerFailure: the worker failed.
        """
        answer = self._receive()
        self.called = answer["called"]
        return Raised(*answer["raised"]) if "raised" in answer else answer["value"]

    def _receive(self) -> Any:
        return json.loads(self.recorder.receive()[0])


@functools.cache
def _preloaded() -> Any:
    from grader.sandbox.spawn import Preloaded  # not needed in a worker

    return Preloaded(f"{__name__}:load", {})
