"""Boundaries that the tests of this folder share, and a short way to open student code."""

import builtins
import pickle
import textwrap
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from grader.boundary.boundary import Boundary
from grader.boundary.proxy.caller import RemoteProblem
from grader.boundary.recorder import SubmissionBudget
from grader.boundary.spawn import Preloaded
from grader.boundary.starting import TemplateProcess
from grader.code.forbidden import ForbiddenCall
from grader.errors import CannotLoad
from grader.result import Status
from tests.lent import lent_boundary

Open = Callable[..., RemoteProblem]

LIES = """
import gc
import sys

msgspec = sys.modules["msgspec"]  # no submission may import it

def lie(change):
    cls = type(next(o for o in gc.get_objects() if type(o).__name__ == "Worker"))
    respond = cls.respond
    def lying(self, request):
        told, tensors = respond(self, request)
        if told.values and isinstance(told.values[0], msgspec.Struct):
            told.values[0] = msgspec.to_builtins(told.values[0])
            change(told)
        return told, tensors
    cls.respond = lying
"""
"""Student code by which a worker changes what it says of its first value."""


@pytest.fixture(scope="session")
def sandbox(origin: TemplateProcess) -> Iterator[Boundary]:
    with lent_boundary(origin, call_seconds=30) as boundary:
        yield boundary


@pytest.fixture
def opened(sandbox: Boundary) -> Iterator[Open]:
    """Returns a function that loads source text behind the boundary."""
    problems: list[RemoteProblem] = []

    def load(source: str, forbidden: tuple[str, ...] = (), boundary: Boundary = sandbox):
        problem = boundary.open(textwrap.dedent(source).encode(), forbidden)
        problems.append(problem)
        return problem

    yield load
    for problem in problems:
        problem.close()


CALLS = Preloaded("tests.grader.boundary.calling:load", lambda folder: None)


class CalledFile:
    """A file whose functions are called in workers, each call in one of its own.

    Attributes:
        called: the forbidden function that was called in the last call, if any.
    """

    def __init__(
        self,
        boundary: Boundary,
        source: str,
        forbidden: tuple[str, ...] = (),
        budget: SubmissionBudget | None = None,
    ) -> None:
        self._with = boundary, textwrap.dedent(source).encode(), forbidden
        self._budget = budget
        self.called: str | None = None

    def __getattr__(self, name: str):
        return partial(self._call, name)

    def attempts(self) -> list[tuple[str, str]]:
        """Return what the file tried while it was loaded."""
        return self._loaded([])[1]

    def _call(self, name: str, *arguments: object):
        recorder, _ = self._loaded([(name, arguments)])
        try:
            value, error, called = pickle.loads(recorder.receive()[0])
        finally:
            recorder.close()
        self.called = called[0] if called else None
        if error is not None:
            raise exception(*error)
        return value

    def _loaded(self, order: list[tuple[str, tuple[object, ...]]]):
        boundary, source, forbidden = self._with
        budget = self._budget or boundary.budget()
        given = CALLS, pickle.dumps(order), source, forbidden, budget
        recorder = boundary.record(*given)
        error, attempts = pickle.loads(recorder.receive()[0])
        if error is not None or not order:
            recorder.close()
        if error is not None:
            raise CannotLoad(Status.ERROR, ": ".join(error))
        return recorder, attempts


def exception(name: str, text: str) -> Exception:
    kind = ForbiddenCall if name == "ForbiddenCall" else vars(builtins).get(name, RuntimeError)
    return kind(text)


@pytest.fixture
def called(sandbox: Boundary):
    """Return a function that gives a file whose functions are called in workers."""
    return partial(CalledFile, sandbox)
