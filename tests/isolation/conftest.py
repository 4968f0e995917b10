"""Boundaries that the tests of this folder share, and a short way to open student code."""

import sys
import textwrap
from collections.abc import Callable, Iterator

import pytest

from grader.isolation import Boundary, RemoteProblem

Open = Callable[..., RemoteProblem]


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Boundary]:
    if sys.platform != "linux":
        pytest.skip("the sandbox exists on Linux only")
    with Boundary("sandbox", call_seconds=30) as boundary:
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
