"""Check the weights of mistakes: `idea` must cost half of the points, `slip` at most a fifth.

In `mistakes.edits` the head of a mistake may end with its weight:

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
"""The largest share of the points that a mistake may keep if it misses the problem's idea."""

FUNCTION_KEEPS = 0.2
"""The largest share of a function's points that a mistake may keep if it misses its idea."""

SLIP_LOSES = 0.2
"""The largest share of the points that a slip may cost, of the problem and of each function."""


@dataclass(frozen=True)
class Weight:
    """The weight of a mistake.

    Attributes:
        kind: "idea", "slip", or empty for neither.
        function: the function or class with the missed idea; empty if it is the problem's idea.
    """

    kind: str = ""
    function: str = ""

    @classmethod
    def read(cls, text: str) -> Weight:
        """Parse the end of a head: "idea", "idea of area", "slip" or nothing. Raise a ValueError
        for other texts.
        """
        kind, _, function = text.partition(" of ")
        return cls(kind, function)

    def __str__(self) -> str:
        """Return the text that `read` parses."""
        return f"{self.kind} of {self.function}" if self.function else self.kind


def misplaced(
    weight: Weight, result: ProblemResult, asked: Mapping[str, frozenset[str]]
) -> str | None:
    """Return a sentence if a mistake keeps or loses more points than its weight allows, or None.

    Args:
        weight: the weight of the mistake.
        result: the test results of the mistake.
        asked: the names in the student's file that each test uses, by the test's id.
    """
    if weight.kind == "slip":
        return _costly(result, asked)
    if weight.kind != "idea":
        return None
    if not weight.function:
        keeps, of, share = result.points, result.max, IDEA_KEEPS
        what = "the problem"
    else:
        tests = tests_of(weight.function, result, asked)
        keeps, of = sum(test.points for test in tests), sum(test.max for test in tests)
        share, what = FUNCTION_KEEPS, weight.function
        if not tests:
            return f"has the weight 'idea of {what}', but no test uses only {what}"
    if keeps > share * of + 1e-9:
        return f"keeps {keeps:.4g} of {of:g} points, but should miss the idea of {what}"
    return None


def _costly(result: ProblemResult, asked: Mapping[str, frozenset[str]]) -> str | None:
    """Return a sentence if a slip costs too many points of the problem or of a function, or
    None.
    """
    functions = sorted({name for names in asked.values() for name in names})
    parts = [("the problem", result.tests)]
    parts += [(name, tests_of(name, result, asked)) for name in functions]
    for what, tests in parts:
        most = sum(test.max for test in tests)
        lost = most - sum(test.points for test in tests)
        if lost > SLIP_LOSES * most + 1e-9:
            return f"loses {lost:.4g} of the {most:g} points of {what}, but should be a slip"
    return None


def tests_of(
    function: str, result: ProblemResult, asked: Mapping[str, frozenset[str]]
) -> list[TestResult]:
    """Return the results of the tests that use this function or class and no other."""
    return [test for test in result.tests if asked.get(test.id) == frozenset({function})]


def is_settled(weight: Weight, result: ProblemResult, most: float) -> bool:
    """Return whether the tests that ran are enough to judge the weight of a mistake.

    For a slip all tests must run, because it must not lose too many points of any function.

    Args:
        weight: the weight of the mistake.
        result: the results so far. If the idea of a function is missed, only those of the tests
            that use no other function.
        most: the points of all such tests, including those that did not run.
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


class NotesNames:
    """Load a problem's file, and record which of its names each test uses.

    Args:
        files: loads the file.

    Attributes:
        asked: the used names, by the test's id.
    """

    def __init__(self, files: LocalFiles) -> None:
        self._files = files
        self._test = ""
        self.asked: dict[str, frozenset[str]] = {}

    def begin(self, problem: str, test: str) -> None:
        """Start to record names for this test. The test session calls this method."""
        self._test = test
        self.asked[test] = frozenset()

    def __call__(self, problem: Problem, forbidden: tuple[str, ...] = ()) -> Any:
        """Return a proxy of the module that records the used names."""
        return _Watched(self._files(problem, forbidden), self._note)

    def forget(self, problem: Problem) -> None:
        """Load the module again in the next call."""
        self._files.forget(problem)

    def _note(self, name: str) -> None:
        self.asked[self._test] |= {name}


class _Watched(ModuleType):
    def __init__(self, module: ModuleType, note: Any) -> None:
        super().__init__(module.__name__)
        self._module, self._note = module, note

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if getattr(value, "__module__", None) == self._module.__name__:
            self._note(name)
        return value
