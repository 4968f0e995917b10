"""What a run of tests is about: whose file is tested, which tests, and what came of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from grader.course import Problem
from grader.diagnose.evidence import Shown
from grader.diagnose.probe import Answers
from grader.result import ProblemResult, Status, TestResult
from grader.run.records import CollectedTest, ProblemTests


class Opener(Protocol):
    """Gives a problem's code to the tests that ask for it: a module, or what acts like one."""

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> Any:
        """Return the code, the same for all tests that forbid the same; may raise CannotLoad.

        Args:
            problem: whose tests ask.
            forbidden: the functions that the code may not call.
        """

    def forget(self, problem: Problem) -> None:
        """Have the code loaded again, without what previous calls may have left in it.

        What could not be loaded, and may never end, isn't tried again.
        """


class RunsAgain(Protocol):
    """Runs a problem's code again once its tests have run, to learn which mistake it makes."""

    def ask(self, tests: ProblemTests) -> dict[str, Answers]:
        """Return the answers to the problem's probe; none if it cannot be asked.

        Raises:
            CannotLoad: the file can't be used.
        """

    def passed(self, tests: Sequence[CollectedTest]) -> set[str]:
        """Return the ids of those tests that pass when they run again, with the file loaded again.

        Args:
            tests: some tests of the problem, in the order in which they run.
        """


class Session:
    """What a run of the course's tests is about: whose file is tested, and what came of it.

    Args:
        open_problem: gives the student's code to the tests.
        hidden: whether the tests below the hidden marker run too.
        seed: what the inputs that tests draw are made from.
        on_start: called with a problem's id and a test's id before the test runs.
        on_result: called with a problem's id and the result after each test.
        reverse: whether the tests run in reverse order.
        watch: whether to look for forbidden calls.
        diagnose: whether to name mistakes once the tests have run.
        debugger: whether the student may use a debugger, which ends the run when it is left.

    Attributes:
        results: what the tests of each problem found, by the problem's id.
        chosen: how many tests of each problem are to run, unless pytest is told to run fewer.
        left_out: how many tests of each problem were not run as they are hidden.
        timeouts: how many tests of each problem did not come to an end.
        printed: what the student's code printed in the tests of each problem, by the test's id.
        shown: what the wrong answers in the tests of each problem show, by the test's id.
        tests: the test file of each problem that has results, by the problem's id.
        ran: the tests of each problem that ran, in order, by the problem's id.
        again: what runs a problem's code again, by its id; of other problems, it runs here.
        not_begun: the optional problems of which only the stub is there, if they are left out.
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
        """Return the tests that are to run in this session, in order; count what is left out."""
        chosen = [test for test in tests if self.hidden or not test.hidden]
        self.chosen.update(test.problem.id for test in chosen)
        self.left_out.update(test.problem.id for test in tests if test.hidden and not self.hidden)
        return chosen[::-1] if self.reverse else chosen

    def add(self, test: CollectedTest, result: TestResult) -> None:
        """Keep a test's result and pass it on."""
        id = test.problem.id
        self.tests[id] = test.tests
        self.ran[id].append(test)
        if id not in self.results:
            self.results[id] = test.problem.result()
        self.results[id].tests.append(result)
        self.timeouts[id] += result.status is Status.TIMEOUT
        self.on_result(id, result)
