"""What reports call people: by their real names, and never two of them the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from grader.result import SubmissionResult
from grader.text import line, look, person_name


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
    """Return who everybody is, by submission; who shares a name has the submission's behind it."""
    names = {result.submission: _name(result) for result in results}
    borne = Counter(map(look, names.values()))
    return {
        submission: Person(
            f"{name} ({line(submission)})" if borne[look(name)] > 1 else name, submission
        )
        for submission, name in names.items()
    }


def _name(result: SubmissionResult) -> str:
    return person_name(result.shown_name) or line(result.submission)


def by_name(results: Iterable[SubmissionResult]) -> list[SubmissionResult]:
    """Return the results in the order of people's names."""
    return sorted(results, key=lambda r: (_name(r).casefold(), r.submission))
