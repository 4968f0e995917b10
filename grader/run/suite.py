"""Run the tests of some problems many times after collecting them once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy
from torch import Tensor

from grader.code.quiet import quiet
from grader.code.tensors import keep_memory
from grader.code.time_limit import TIMEOUT_SECONDS
from grader.course import Problem
from grader.errors import CourseError
from grader.run.collecting import CollectedTest, ProblemTests, collect
from grader.run.mistakes_made import name_mistakes
from grader.run.runner import load_late_parts, run_test
from grader.run.session import Session


class Suite:
    """The tests of some problems, collected once and run many times.

    pytest takes about as long to collect tests as to run many tests.

    Args:
        problems: the problems whose tests are collected.
        root: the course's folder.
        timeout: the time limit of one test in seconds.

    Attributes:
        tests: the collected tests.

    Raises:
        CourseError: a test file can't be run, or a problem has no test.
    """

    def __init__(
        self,
        problems: Iterable[Problem],
        root: Path,
        *,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        keep_memory()
        self._timeout = timeout
        self.tests = collect(problems, root)
        self._own = [(values, deepcopy(values)) for values in _values_of(self.tests)]

    def tests_of(self, problem: Problem) -> ProblemTests:
        """Return a problem's collected test file."""
        return next(test.tests for test in self.tests if test.problem == problem)

    def run(
        self,
        session: Session,
        problems: Iterable[Problem] | None = None,
        tests: Iterable[str] = (),
        *,
        order: Callable[[CollectedTest], tuple[float, ...]] | None = None,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run tests and name mistakes; the session collects the results.

        Args:
            session: opens the tested files, and receives the results.
            problems: the problems to test; by default all collected problems.
            tests: ids or names of the tests to run in these problems; by default all tests.
            order: the sort key of the tests; by default they run in the session's order.
            enough: called before each test. If it returns True, no more tests run.

        Raises:
            CourseError: no test has one of these ids or names.
            KeyboardInterrupt: the user interrupted the run.
        """
        wanted = None if problems is None else {*problems}
        names = {*tests}
        selected = [
            test
            for test in self.tests
            if (wanted is None or test.problem in wanted)
            and (not names or not names.isdisjoint((test.id, test.name)))
        ]
        if names and not selected:
            raise CourseError(f"there is no test {' or '.join(sorted(names))}")
        chosen = session.choose(selected)
        load_late_parts()
        with quiet() as printed:
            for test in chosen if order is None else sorted(chosen, key=order):
                if enough():
                    break
                printed.take()
                run_test(test, session, self._timeout, printed.take)
            name_mistakes(session)
        for values, before in self._own:  # undo changes that a submission made
            if isinstance(values, Tensor):
                values.data = before.clone()
            elif values.flags.writeable:
                values[...] = before


def _values_of(tests: Iterable[CollectedTest]) -> list[Any]:
    """Return the tensors and arrays in test modules and in modules that they import."""
    tests = [*tests]
    modules = {test.tests.module for test in tests}
    folders = {test.problem.folder.parent for test in tests}
    values = [value for module in modules for value in vars(module).values()]
    of_course = [
        value
        for value in values
        if isinstance(value, ModuleType)
        and folders & {*Path(getattr(value, "__file__", None) or "").parents}
    ]
    values += [value for module in of_course for value in vars(module).values()]
    functions = [value for value in values if isinstance(value, FunctionType)]
    values += [value for function in functions for value in function.__globals__.values()]
    return [
        *{
            id(value): value for value in values if isinstance(value, Tensor | numpy.ndarray)
        }.values()
    ]
