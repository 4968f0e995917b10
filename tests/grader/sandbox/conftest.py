"""A sandbox that the tests of this folder share, and functions that run student code in it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from grader.course import Course
from grader.result import ProblemResult
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import TemplateProcess
from tests.grader.sandbox.asking import Asked
from tests.lent import lent_sandbox
from tests.source_grader import SourceGrader

Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def sandbox(origin: TemplateProcess) -> Iterator[Sandbox]:
    with lent_sandbox(origin, call_seconds=30) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def ask(sandbox: Sandbox) -> Ask:
    """Return a function that evaluates expressions about a file in a worker.

    The function returns the value of one expression, or a list with the values of several.
    """

    def evaluate(source: str, *expressions: str, **options: Any) -> Any:
        with Asked(sandbox, source, *expressions, **options) as asked:
            assert asked.error is None
            values = [asked.next() for _ in expressions]
        return values[0] if len(values) == 1 else values

    return evaluate


@pytest.fixture(scope="session")
def graded(
    sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory, new_course: Callable[..., Course]
) -> Callable[[str], ProblemResult]:
    """Return a function that grades a file of the small course with the visible tests."""
    course = new_course(tmp_path_factory.mktemp("graded") / "course")
    test_file = course.problems()[0].test_file
    visible, _, _ = test_file.read_text(encoding="utf-8").partition("# --- hidden tests ---")
    test_file.write_text(visible, encoding="utf-8")
    return SourceGrader(course, sandbox)
