"""List the candidates of an audit: correct and wrong files of each problem, with their
conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from grader.course import REFERENCE, Course, Problem
from grader.diagnose.edits import Edit, edits_file, mistakes_of


class CandidateKind(StrEnum):
    """The kind of a candidate, which determines the required outcome."""

    STUB = "stub"
    SOLUTION = "solution"
    VARIANT = "variant"
    MISTAKE = "mistake"


@dataclass(frozen=True)
class Conditions:
    """The conditions of a candidate's run, which must not change its outcome."""

    seed: int
    reverse: bool


def _conditions(number: int) -> Conditions:
    """Return conditions with this seed; even and odd numbers differ in the order of tests."""
    return Conditions(number, reverse=number % 2 == 1)


USUAL = _conditions(0)
OTHERS = (_conditions(1), _conditions(2), _conditions(3))
"""The other conditions: all of them for the solution, the last one for a mistake."""


@dataclass(frozen=True)
class Candidate:
    """A file to run a problem's tests on, with its conditions.

    Attributes:
        problem: the problem.
        kind: its kind.
        path: the file; for a mistake the file with all edits.
        source: the code.
        conditions: the conditions of the run.
        edit: the edit of a mistake.
    """

    problem: Problem
    kind: CandidateKind
    path: Path
    source: bytes
    conditions: Conditions = USUAL
    edit: Edit | None = None

    @property
    def name(self) -> str:
        """The name of a variant or mistake, the kind for the others."""
        if self.edit is not None:
            return self.edit.name
        return self.path.stem if self.kind is CandidateKind.VARIANT else self.kind.value


def candidates(course: Course, problems: Iterable[Problem]) -> Iterator[Candidate]:
    """Yield all candidates of some problems.

    Raises:
        CourseError: a mistake's edit can't be read, or doesn't fit.
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
