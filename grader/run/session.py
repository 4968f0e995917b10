"""The session: the tested code, the selected tests, and the results of one run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, Protocol

from grader.course import Problem
from grader.diagnose.evidence import Shown
from grader.diagnose.probe import Answers
from grader.result import ProblemResult, Status, TestResult
from grader.run.collecting import CollectedTest, ProblemTests


class Opener(Protocol):
    """Opens a problem's code for its tests."""

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> Any:
        """Return the module of the code.

        Args:
            problem: the problem.
            forbidden: the functions that the code may not call.

        Raises:
            CannotLoad: the file can't be used.
        """

    def forget(self, problem: Problem) -> None:
        """Forget the loaded module, so that the next call loads the code again.

        Code that could not be loaded is not loaded again, because it might exceed the time limit.
        """


class OpenModule:
    """Opens the same module for all tests.

    Args:
        module: the module.
    """

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> ModuleType:
        """Return the module."""
        return self._module

    def forget(self, problem: Problem) -> None:
        """Do nothing, as the module is not loaded here."""


class RunsAgain(Protocol):
    """Runs a problem's code again after the problem's tests, to name mistakes in the code."""

    def ask(self, tests: ProblemTests) -> dict[str, Answers]:
        """Return the answers to the problem's probe, by part; empty if the probe cannot run.

        Raises:
            CannotLoad: the file can't be used.
        """

    def passed(self, tests: Sequence[CollectedTest]) -> set[str]:
        """Load the file again, run tests, and return the ids of the tests that pass.

        Args:
            tests: tests of one problem, in the order in which they run.
        """


class Session:
    """One run of the course's tests: the tested code, the options and the results.

    Args:
        open_problem: opens the student's code.
        hidden: whether the hidden halves run too.
        seed: the seed of the tests' inputs.
        on_start: called with a problem's id and a test's id before the test runs.
        on_result: called with a problem's id and the result after each test.
        reverse: whether the tests run in reverse order.
        watch: whether to detect forbidden calls.
        diagnose: whether to name mistakes after the tests have run.
        debugger: whether quitting a debugger ends the run.

    Attributes:
        results: the results of each problem, by the problem's id.
        chosen: the number of selected tests of each problem, by the problem's id. It is empty if
            the user named single tests.
        left_out: the number of each problem's hidden tests that were not selected.
        timeouts: the number of each problem's tests that exceeded the time limit.
        printed: the text that the student's code printed, by the problem's and the test's id.
        shown: the evidence about wrong answers, by the problem's and the test's id.
        tests: the test file of each problem that has results, by the problem's id.
        ran: each problem's tests that ran, in order, by the problem's id.
        again: objects that run a problem's code again, by the problem's id. The code of a problem
            without such an object is run again in this process.
        not_begun: the optional problems that were skipped because the student has not begun them.
    """

    def __init__(
        self,
        open_problem: Opener,
        *,
        hidden: bool = False,
        seed: int = 0,
        on_start: Callable[[str, str], None] = lambda problem, test: None,
        on_result: Callable[[str, TestResult], None] = lambda problem, result: None,
        reverse: bool = False,
        watch: bool = True,
        diagnose: bool = True,
        debugger: bool = False,
    ) -> None:
        self.open_problem = open_problem
        self.hidden = hidden
        self.seed = seed
        self.on_start = on_start
        self.on_result = on_result
        self.reverse = reverse
        self.watch = watch
        self.names_mistakes = diagnose
        self.debugger = debugger
        self.results: dict[str, ProblemResult] = {}
        self.chosen: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.timeouts: Counter[str] = Counter()
        self.printed: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.shown: defaultdict[str, dict[str, Shown]] = defaultdict(dict)
        self.again: dict[str, RunsAgain] = {}
        self.not_begun: list[Problem] = []
        self.tests: dict[str, ProblemTests] = {}
        self.ran: defaultdict[str, list[CollectedTest]] = defaultdict(list)

    @property
    def problems(self) -> dict[str, Problem]:
        """The problems that have results, by their ids."""
        return {id: tests.problem for id, tests in self.tests.items()}

    def choose(self, tests: Sequence[CollectedTest]) -> list[CollectedTest]:
        """Return the tests to run, in order, and update `chosen` and `left_out`."""
        chosen = [test for test in tests if self.hidden or not test.hidden]
        self.chosen.update(test.problem.id for test in chosen)
        self.left_out.update(test.problem.id for test in tests if test.hidden and not self.hidden)
        return chosen[::-1] if self.reverse else chosen

    def add(self, test: CollectedTest, result: TestResult) -> None:
        """Add a test's result, and call `on_result`."""
        id = test.problem.id
        self.tests[id] = test.tests
        self.ran[id].append(test)
        if id not in self.results:
            self.results[id] = test.problem.result()
        self.results[id].tests.append(result)
        self.timeouts[id] += result.status is Status.TIMEOUT
        self.on_result(id, result)
