"""Boundaries that the tests of this folder share, and a short way to open student code."""

import textwrap
from collections.abc import Callable, Iterator

import pytest

from grader.boundary.boundary import Boundary
from grader.boundary.proxy.caller import RemoteProblem
from grader.boundary.starting import TemplateProcess
from tests.lent import lent_boundary

Open = Callable[..., RemoteProblem]


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
