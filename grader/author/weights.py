"""Check that a mistake costs as many points as its weight requires.

An `idea` must cost at least half of the points, and a `slip` at most a fifth. In `mistakes.edits`,
the head of a mistake may end with its weight:

    == no_mask (reference) idea           the mistake misses the idea of the problem
    == inverted (reference) idea of area  the mistake misses the idea of this function or class
    == in_float32 (reference) slip        a small error, such as in digits or a default
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from grader.course import Problem
from grader.result import ProblemResult, Status, TestResult
from grader.run.local_files import LocalFiles

IDEA_KEEPS = 0.5
"""A mistake that misses the problem's idea must keep at most this share of the points."""

FUNCTION_KEEPS = 0.2
"""A mistake that misses a function's idea must keep at most this share of the function's points."""

SLIP_LOSES = 0.2
"""The largest share of a problem's points, and of each function's points, that a slip may cost."""


@dataclass(frozen=True)
class Weight:
    """The weight of a mistake.

    Attributes:
        kind: "idea", "slip", or "" if the mistake has no weight.
        function: the function or class of which the mistake misses the idea; empty if it misses the
            idea of the whole problem.
    """

    kind: str = ""
    function: str = ""

    @classmethod
    def read(cls, text: str) -> Weight:
        """Parse a weight in `mistakes.edits`: "idea", "idea of area", "slip" or ""."""
        kind, _, function = text.partition(" of ")
        return cls(kind, function)

    def __str__(self) -> str:
        """Return the text that `read` parses."""
        return f"{self.kind} of {self.function}" if self.function else self.kind


def misplaced(
    weight: Weight, result: ProblemResult, uses: Mapping[str, frozenset[str]]
) -> str | None:
    """Return why a mistake's weight is wrong, or None if the weight is correct.

    The reason is the end of a sentence.

    Args:
        weight: the weight of the mistake.
        result: the test results of the mistake.
        uses: for each test id, the functions and classes that the test uses.
    """
    if weight.kind == "slip":
        return _costly(result, uses)
    if weight.kind != "idea":
        return None
    if not weight.function:
        keeps, of, share = result.points, result.max, IDEA_KEEPS
        what = "the problem"
    else:
        tests = tests_of(weight.function, result, uses)
        keeps, of = sum(test.points for test in tests), sum(test.max for test in tests)
        share, what = FUNCTION_KEEPS, weight.function
        if not tests:
            return f"has the weight 'idea of {what}', but no test uses only {what}"
    if keeps > share * of + 1e-9:
        return f"keeps {keeps:.4g} of {of:g} points, but should miss the idea of {what}"
    return None


def _costly(result: ProblemResult, uses: Mapping[str, frozenset[str]]) -> str | None:
    """Return the reason if a slip costs too many points, or None.

    The reason is the end of a sentence.
    """
    functions = sorted({name for names in uses.values() for name in names})
    parts = [("the problem", result.tests)]
    parts += [(name, tests_of(name, result, uses)) for name in functions]
    for what, tests in parts:
        most = sum(test.max for test in tests)
        lost = most - sum(test.points for test in tests)
        if lost > SLIP_LOSES * most + 1e-9:
            return f"loses {lost:.4g} of the {most:g} points of {what}, but should be a slip"
    return None


def tests_of(
    function: str, result: ProblemResult, uses: Mapping[str, frozenset[str]]
) -> list[TestResult]:
    """Return the results of the tests that use only this function or class."""
    return [test for test in result.tests if uses.get(test.id) == frozenset({function})]


def is_settled(weight: Weight, result: ProblemResult, most: float) -> bool:
    """Return whether the tests that ran are enough to judge the weight of a mistake.

    For a slip all tests must run, because it must not lose too many points of any function. If the
    mistake misses the idea of a function, only the tests that use no other function count.

    Args:
        weight: the weight of the mistake.
        result: the results of the tests that count and that ran.
        most: the points of all tests that count, including those that did not run.
    """
    if all(test.status is Status.PASSED for test in result.tests):
        return False
    match weight.kind:
        case "idea":
            keeps = FUNCTION_KEEPS if weight.function else IDEA_KEEPS
            return result.max - result.points >= (1 - keeps) * most
        case "slip":
            return False
        case _:
            return True


class NameRecorder:
    """Loads a problem's file, and records which of its functions and classes each test uses.

    Args:
        files: the loader of the file.

    Attributes:
        uses: for each test id, the names of the used functions and classes.
    """

    def __init__(self, files: LocalFiles) -> None:
        self._files = files
        self._test = ""
        self.uses: dict[str, frozenset[str]] = {}

    def begin(self, problem: str, test: str) -> None:
        """Record names for this test from now on. The test session calls this method."""
        self._test = test
        self.uses[test] = frozenset()

    def __call__(self, problem: Problem, forbidden: tuple[str, ...] = ()) -> Any:
        """Load the problem's file, and return a proxy of the module that records the used names."""
        return _Watched(self._files(problem, forbidden), self._note)

    def forget(self, problem: Problem) -> None:
        """Forget the loaded module, so that the next call loads it again."""
        self._files.forget(problem)

    def _note(self, name: str) -> None:
        self.uses[self._test] |= {name}


class _Watched(ModuleType):
    def __init__(self, module: ModuleType, note: Any) -> None:
        super().__init__(module.__name__)
        self._module, self._note = module, note

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if getattr(value, "__module__", None) == self._module.__name__:
            self._note(name)
        return value
