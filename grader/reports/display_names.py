"""What reports call people: by their real names, and never two of them the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader.result import SubmissionResult, readable_names


@dataclass(frozen=True)
class Person:
    """A student or group as the reports show them.

    Attributes:
        name: what they are called, in one line, like nobody else in the class.
        submission: the name of their files among the results.
    """

    name: str
    submission: str

    def __str__(self) -> str:
        """Return the name."""
        return self.name


def people(results: Iterable[SubmissionResult]) -> dict[str, Person]:
    """Return who everybody is, by submission."""
    names = readable_names(results)
    return {submission: Person(name, submission) for submission, name in names.items()}


def by_name(results: Iterable[SubmissionResult]) -> list[SubmissionResult]:
    """Return the results in the order of people's names."""
    results = list(results)
    names = readable_names(results)
    return sorted(results, key=lambda r: (names[r.submission].casefold(), r.submission))
