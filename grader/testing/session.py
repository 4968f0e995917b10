"""What a run of tests is about: whose file is tested, which tests, and what came of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch

from grader.course import Problem
from grader.errors import CannotLoad
from grader.result import ProblemResult, Status, TestResult
from grader.testing.diagnosis.naming import diagnose, unnamed
from grader.testing.diagnosis.probe import ask
from grader.testing.records import CollectedTest, ProblemTests

DIAGNOSED = frozenset({Status.FAILED, Status.ERROR, Status.FORBIDDEN})
"""The statuses that a mistake in the student's code leads to."""


class Opener(Protocol):
    """Gives a problem's code to the tests that ask for it: a module, or what acts like one."""

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> Any:
        """Return the code, the same for all tests; may raise CannotLoad.

        Args:
            problem: whose tests ask.
            forbidden: the functions that the problem forbids.
        """

    def reopen(self, problem: Problem, forbidden: tuple[str, ...]) -> Any:
        """Return the code loaded afresh, without what previous calls may have left in it."""


class Session:
    """What a run of the course's tests is about: whose file is tested, and what came of it.

    Args:
        open_problem: gives the student's code to the tests.
        hidden: whether the tests below the hidden marker run too.
        seed: what the inputs that tests draw are made from.
        on_start: called with a problem's id and a test's id before the test runs.
        on_result: called with a problem's id and the result after each test.
        on_exception: called with a test's id and what it raised.
        reverse: whether the tests run in reverse order.
        watch: whether to look out for forbidden calls here; not where the student's code runs in
            another process, which does so itself.
        diagnose: whether to name mistakes once the tests have run.
        debugger: whether the student may use a debugger, which ends the run when it is left.

    Attributes:
        results: what the tests of each problem found, by the problem's id.
        chosen: how many tests of each problem are to run, unless pytest is told to run fewer.
        left_out: how many tests of each problem were not run as they are hidden.
        timeouts: how many tests of each problem did not come to an end.
        printed: what the student's code printed in the tests of each problem, by the test's id.
        not_begun: the problems of part two of which only the stub is there, if they are left out.
    """

    def __init__(
        self,
        open_problem: Opener,
        *,
        hidden: bool = False,
        seed: int = 0,
        on_start: Callable[[str, str], None] = lambda problem, test: None,
        on_result: Callable[[str, TestResult], None] = lambda problem, result: None,
        on_exception: Callable[[str, BaseException], None] = lambda test, exception: None,
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
        self.on_exception = on_exception
        self.reverse = reverse
        self.watch = watch
        self.names_mistakes = diagnose
        self.debugger = debugger
        self.results: dict[str, ProblemResult] = {}
        self.chosen: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.timeouts: Counter[str] = Counter()
        self.printed: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.not_begun: list[Problem] = []
        self._tests: dict[str, ProblemTests] = {}

    @property
    def problems(self) -> dict[str, Problem]:
        """The problems that have results, by their ids."""
        return {id: tests.problem for id, tests in self._tests.items()}

    def choose(self, tests: Sequence[CollectedTest]) -> list[CollectedTest]:
        """Return the tests that are to run in this session, in order; count what is left out.

        Students read what visible tests say. So those of all problems come first: then no code has
        seen a hidden test's inputs yet.
        """
        chosen = [test for test in tests if self.hidden or not test.hidden]
        self.chosen.update(test.problem.id for test in chosen)
        self.left_out.update(test.problem.id for test in tests if test.hidden and not self.hidden)
        return chosen[::-1] if self.reverse else sorted(chosen, key=lambda test: test.hidden)

    def add(self, tests: ProblemTests, result: TestResult) -> None:
        """Keep the result of one of a problem's tests and pass it on."""
        id = tests.problem.id
        self._tests[id] = tests
        if id not in self.results:
            self.results[id] = ProblemResult(id, part=tests.problem.part)
        self.results[id].tests.append(result)
        self.timeouts[id] += result.status is Status.TIMEOUT
        self.on_result(id, result)

    def diagnose(self) -> None:
        """Ask the code of each problem that has a wrong answer which known mistake it makes."""
        if not self.names_mistakes:
            return
        for id, result in self.results.items():
            wrong = any(test.status in DIAGNOSED for test in result.tests)
            if wrong and not self.timeouts[id]:
                with torch.enable_grad():  # code may leave gradients off, for itself alone
                    self._diagnose(self._tests[id], result)

    def _diagnose(self, tests: ProblemTests, result: ProblemResult) -> None:
        if tests.probe is None:
            return
        try:
            code = self.open_problem.reopen(tests.problem, tests.forbidden)
        except CannotLoad:
            return
        answers = ask(tests.probe, code, tests.forbidden if self.watch else ())
        found = diagnose(tests.fingerprints, answers)
        names = tuple(name for diagnosis in found for name in diagnosis.mistakes)
        result.diagnoses = [diagnosis.text for diagnosis in found]
        result.unknown = unnamed(tests.fingerprints, answers, found)
        result.mistakes = [list(diagnosis.mistakes) for diagnosis in found]
        result.tests = [
            replace(test, diagnosis=names) if test.status in DIAGNOSED else test
            for test in result.tests
        ]
