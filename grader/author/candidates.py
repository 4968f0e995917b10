"""List the candidates of an audit: the correct and wrong files on which it runs the tests."""

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
    """The seed and the order of the tests in a run. Outcomes must not depend on them."""

    seed: int
    reverse: bool


def _conditions(number: int) -> Conditions:
    """Return conditions with the seed `number`. If it is odd, the tests run in reverse order."""
    return Conditions(number, reverse=number % 2 == 1)


USUAL = _conditions(0)
OTHERS = (_conditions(1), _conditions(2), _conditions(3))
"""Additional conditions for test runs.

The tests run on the reference under all of these conditions. If few tests catch a mistake, the
tests also run on the mistake under the last of these conditions.
"""


@dataclass(frozen=True)
class Candidate:
    """A file on which a problem's tests are run, and the conditions of the run.

    Attributes:
        problem: the problem.
        kind: the kind of the candidate.
        path: the path of the file; for a mistake, the path of `mistakes.edits`.
        source: the content of the file.
        conditions: the conditions of the run.
        edit: the edit that creates the mistake; None for other kinds.
    """

    problem: Problem
    kind: CandidateKind
    path: Path
    source: bytes
    conditions: Conditions = USUAL
    edit: Edit | None = None

    @property
    def name(self) -> str:
        """The name of a variant or mistake. For other candidates, it is the kind."""
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
        # Each variant has another seed, so that the tests draw many different inputs.
        for number, path in enumerate(right.values(), 4):
            yield Candidate(
                problem, CandidateKind.VARIANT, path, path.read_bytes(), _conditions(number)
            )
        edits = edits_file(course, problem)
        for mistake in mistakes_of(course, problem):
            source = mistake.source.encode()
            yield Candidate(problem, CandidateKind.MISTAKE, edits, source, edit=mistake.edit)
