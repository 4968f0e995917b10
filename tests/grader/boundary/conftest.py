"""Boundaries that the tests of this folder share, and a short way to open student code."""

import textwrap
from collections.abc import Callable, Iterator

import pytest

from grader.boundary.boundary import Boundary
from grader.boundary.proxy.caller import RemoteProblem
from grader.boundary.starting import TemplateProcess
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
