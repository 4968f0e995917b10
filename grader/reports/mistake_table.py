"""The known mistakes that a class made, and who made which."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from grader.reports.display_names import Person, by_name, people
from grader.result import ProblemResult, SubmissionResult


@dataclass
class MistakeRow:
    """A known mistake and who made it.

    Attributes:
        problem: the problem's id.
        names: its names in the catalogue.
        text: what its students read.
        people: who made it.
    """

    problem: str
    names: str
    text: str
    people: list[Person] = field(default_factory=list)

    @property
    def anchor(self) -> str:
        """The name by which pages link to it."""
        return re.sub(r"[^a-z0-9]+", "-", f"{self.problem} {self.names}".lower())


def mistakes_made(results: Iterable[SubmissionResult]) -> list[MistakeRow]:
    """Return the mistakes that were made, the most frequent first."""
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
    """Return the mistakes that a problem's answers show: their names, and what to say of them.

    What a test has seen of a module's parts has no name; that test says it.
    """
    told = zip(problem.mistakes, problem.diagnoses, strict=False)
    return [(" or ".join(names), text) for names, text in told if names]
