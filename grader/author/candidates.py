"""List the candidates of an audit: the files on which it runs the tests, correct and wrong
ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from grader.course import REFERENCE, Course, Problem
from grader.diagnose.edits import Edit, edits_file, mistakes_of


class CandidateKind(StrEnum):
    """The kind of a candidate. Each kind has its required outcome: for example, a mistake must
    fail.
    """

    STUB = "stub"
    SOLUTION = "solution"
    VARIANT = "variant"
    MISTAKE = "mistake"


@dataclass(frozen=True)
class Conditions:
    """The seed and the order of the tests in a run. They must not change the outcome."""

    seed: int
    reverse: bool


def _conditions(number: int) -> Conditions:
    """Return conditions with this seed; the order of the tests depends on whether it is even or
    odd.
    """
    return Conditions(number, reverse=number % 2 == 1)


USUAL = _conditions(0)
OTHERS = (_conditions(1), _conditions(2), _conditions(3))
"""Additional conditions. The reference runs under all of them, a mistake only under the last."""


@dataclass(frozen=True)
class Candidate:
    """A file to run a problem's tests on, with its conditions.

    Attributes:
        problem: the problem.
        kind: its kind.
        path: the file; for a mistake, `mistakes.edits`.
        source: the code.
        conditions: the conditions of the run.
        edit: the edit that makes the mistake; None for other kinds.
    """

    problem: Problem
    kind: CandidateKind
    path: Path
    source: bytes
    conditions: Conditions = USUAL
    edit: Edit | None = None

    @property
    def name(self) -> str:
        """The name of a variant or mistake; for other candidates, their kind."""
        if self.edit is not None:
            return self.edit.name
        return self.path.stem if self.kind is CandidateKind.VARIANT else self.kind.value


def candidates(course: Course, problems: Iterable[Problem]) -> Iterator[Candidate]:
    """Yield all candidates of these problems.

    Raises:
        CourseError: a mistake's edit can't be read or can't be applied.
    """
    for problem in problems:
        right = course.right_files(problem)
        solution = right.pop(REFERENCE)
        yield Candidate(problem, CandidateKind.STUB, problem.stub, problem.stub.read_bytes())
        yield Candidate(problem, CandidateKind.SOLUTION, solution, solution.read_bytes())
        # Each variant has different conditions, so that the tests draw many different inputs.
        for number, path in enumerate(right.values(), 4):
            yield Candidate(
                problem, CandidateKind.VARIANT, path, path.read_bytes(), _conditions(number)
            )
        edits = edits_file(course, problem)
        for mistake in mistakes_of(course, problem):
            source = mistake.source.encode()
            yield Candidate(problem, CandidateKind.MISTAKE, edits, source, edit=mistake.edit)
