"""Weights of mistakes: `idea` loses at least half of the points, `slip` at most a fifth.

The weight of a mistake in `mistakes.edits` follows its head, if it has one:

    == no_mask (reference) idea                  it misses the idea of the problem
    == inverted (reference) idea of area  it misses the idea of this function or class
    == in_float32 (reference) slip               digits, a default, the type of an error
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
"""The share of a problem's points that a mistake which misses its idea may keep."""

FUNCTION_KEEPS = 0.2
"""The share of a function's points that a mistake which misses its idea may keep."""

SLIP_LOSES = 0.2
"""The share of the points of a problem, and of each function, that a slip may cost."""


@dataclass(frozen=True)
class Weight:
    """The weight of a mistake.

    Attributes:
        kind: "idea", "slip", or empty for neither.
        function: the function or class whose idea is missed; empty for that of the problem.
    """

    kind: str = ""
    function: str = ""

    @classmethod
    def read(cls, text: str) -> Weight:
        """Read the end of a head: "idea", "idea of area", "slip" or nothing. Anything else is an
        error.
        """
        kind, _, function = text.partition(" of ")
        return cls(kind, function)

    def __str__(self) -> str:
        """Return the text that `read` parses."""
        return f"{self.kind} of {self.function}" if self.function else self.kind


def misplaced(
    weight: Weight, result: ProblemResult, asked: Mapping[str, frozenset[str]]
) -> str | None:
    """Return a sentence when a mistake keeps more points, or loses more, than its weight allows.

    Args:
        weight: the weight of the mistake.
        result: its result.
        asked: the names of the student's file that each test uses, by the test's id.
    """
    if weight.kind == "slip":
        return _costly(result, asked)
    if weight.kind != "idea":
        return None
    if not weight.function:
        keeps, of, share = result.points, result.max, IDEA_KEEPS
        what = "the problem"
    else:
        own = tests_of(weight.function, result, asked)
        keeps, of = sum(test.points for test in own), sum(test.max for test in own)
        share, what = FUNCTION_KEEPS, weight.function
        if not own:
            return f"is said to miss the idea of {what}, which no test uses by itself"
    if keeps > share * of + 1e-9:
        return f"keeps {keeps:.4g} of {of:g} points, and misses the idea of {what}"
    return None


def _costly(result: ProblemResult, asked: Mapping[str, frozenset[str]]) -> str | None:
    """Return a sentence when a slip costs too much of the problem, or of one function."""
    functions = sorted({name for names in asked.values() for name in names})
    parts = [("the problem", result.tests)]
    parts += [(name, tests_of(name, result, asked)) for name in functions]
    for what, tests in parts:
        most = sum(test.max for test in tests)
        lost = most - sum(test.points for test in tests)
        if lost > SLIP_LOSES * most + 1e-9:
            return f"loses {lost:.4g} of the {most:g} points of {what}, and is a slip"
    return None


def tests_of(
    function: str, result: ProblemResult, asked: Mapping[str, frozenset[str]]
) -> list[TestResult]:
    """Return the results of the tests that use only one function or class."""
    return [test for test in result.tests if asked.get(test.id) == frozenset({function})]


def is_settled(weight: Weight, result: ProblemResult, most: float) -> bool:
    """Return whether the tests that ran determine the judgement of a mistake.

    A slip must not lose too much of any function, so all tests run.

    Args:
        weight: the weight of the mistake.
        result: the tests that ran; for a function's idea those that use only it.
        most: the points of all such tests.
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
    """Open a problem's file, and record which of its names each test uses.

    Args:
        files: opens the file.

    Attributes:
        asked: the names, by the test's id.
    """

    def __init__(self, files: LocalFiles) -> None:
        self._files = files
        self._test = ""
        self.asked: dict[str, frozenset[str]] = {}

    def begin(self, problem: str, test: str) -> None:
        """Record the start of a test; a session calls it."""
        self._test = test
        self.asked[test] = frozenset()

    def __call__(self, problem: Problem, forbidden: tuple[str, ...] = ()) -> Any:
        """Return the module, which records the names that are used."""
        return _Watched(self._files(problem, forbidden), self._note)

    def forget(self, problem: Problem) -> None:
        """Load the module again next time."""
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
