"""What the audit runs: of every problem what is right, what is wrong, and under what conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from grader.course import Course, Problem


class Kind(StrEnum):
    """What a candidate is, and so what has to come of it."""

    STUB = "stub"
    SOLUTION = "solution"
    VARIANT = "variant"
    MISTAKE = "mistake"


@dataclass(frozen=True)
class Conditions:
    """Under what conditions a candidate is run. They must make no difference."""

    seed: int
    reverse: bool
    threads: int


def _conditions(number: int) -> Conditions:
    """Return conditions with a seed of their own; four in a row differ in order and threads."""
    return Conditions(number, reverse=number % 2 == 1, threads=1 + number // 2 % 2)


USUAL = _conditions(0)
OTHERS = (_conditions(1), _conditions(2), _conditions(3))


@dataclass(frozen=True)
class Candidate:
    """A file to run a problem's tests against, and under what conditions."""

    problem: Problem
    kind: Kind
    path: Path
    conditions: Conditions = USUAL

    @property
    def name(self) -> str:
        """The file's name for a variant or mistake, the kind for the others."""
        numbered = self.kind in (Kind.VARIANT, Kind.MISTAKE)
        return self.path.stem if numbered else self.kind.value


def candidates(course: Course, problems: Iterable[Problem]) -> Iterator[Candidate]:
    """Yield everything there is to run."""
    for problem in problems:
        solutions = course.solution(problem).parent
        yield Candidate(problem, Kind.STUB, problem.stub)
        yield Candidate(problem, Kind.SOLUTION, course.solution(problem))
        # Each variant has conditions of its own, so that the tests draw many different inputs.
        for number, path in enumerate(sorted((solutions / "variants").glob("*.py")), 4):
            yield Candidate(problem, Kind.VARIANT, path, _conditions(number))
        for path in sorted((solutions / "mistakes").glob("*.py")):
            yield Candidate(problem, Kind.MISTAKE, path)
