"""Collect the known mistakes in the submissions of a class."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from grader.reports.display_names import Person, by_name, people
from grader.result import ProblemResult, SubmissionResult


@dataclass
class MistakeRow:
    """A known mistake and the students who made it.

    Attributes:
        problem: the problem's id.
        names: the names of the mistake in the catalogue.
        text: the sentence for students.
        people: the students who made the mistake.
    """

    problem: str
    names: str
    text: str
    people: list[Person] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """The HTML anchor of the mistake."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.problem} {self.names}".lower())


def mistakes_made(results: Iterable[SubmissionResult]) -> list[MistakeRow]:
    """Return the mistakes of a class, the most frequent first."""
    results = by_name(results)
    who = people(results)
    rows: dict[tuple[str, str], MistakeRow] = {}
    for result in results:
        for problem in result.problems:
            for names, text in mistakes_named(problem):
                row = rows.setdefault((problem.id, names), MistakeRow(problem.id, names, text))
                row.people.append(who[result.submission])
    return sorted(rows.values(), key=lambda row: -len(row.people))


def mistakes_named(problem: ProblemResult) -> list[tuple[str, str]]:
    """Return the (names, sentence) pair of each diagnosis that contains names of mistakes."""
    pairs = zip(problem.mistakes, problem.diagnoses, strict=False)
    return [(" or ".join(names), text) for names, text in pairs if names]
