"""Choose the unique names of students in reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from grader.result import SubmissionResult, readable_names


@dataclass(frozen=True)
class Person:
    """A student or group in reports.

    Attributes:
        name: the unique name, in one line.
        submission: the name of the submission.
    """

    name: str
    submission: str

    def __str__(self) -> str:
        """Return the name."""
        return self.name


def people(results: Iterable[SubmissionResult]) -> dict[str, Person]:
    """Map the name of each submission to its `Person`."""
    names = readable_names(results)
    return {submission: Person(name, submission) for submission, name in names.items()}


def by_name(results: Iterable[SubmissionResult]) -> list[SubmissionResult]:
    """Return the results, sorted by the name of the student."""
    results = list(results)
    names = readable_names(results)
    return sorted(results, key=lambda r: (names[r.submission].casefold(), r.submission))
