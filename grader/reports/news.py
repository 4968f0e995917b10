"""Define the changes since the last run. The terminal and the class page show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grader.reports.display_names import Person
from grader.reports.gradebook_csv import Change


@dataclass(frozen=True, kw_only=True)
class News:
    """Changes since the last run.

    Attributes:
        is_first: whether this is the first complete run.
        changes: the marks that differ from the previous gradebook.
        new: the students who were not in the previous gradebook.
        missing: the students with earlier results who are missing in a run of the whole class.
        of_one_problem: whether the run grades only one of the course's problems.
        about_book: messages about the instructor's files.
    """

    is_first: bool = True
    changes: Sequence[Change] = ()
    new: Sequence[Person] = ()
    missing: Sequence[str] = ()
    of_one_problem: bool = False
    about_book: Sequence[str] = field(default_factory=tuple)

    @property
    def missing_line(self) -> str:
        """The message about missing students; empty if no student is missing."""
        if not self.missing:
            return ""
        what = (
            "Without a submission for this problem"
            if self.of_one_problem
            else "Missing in this run"
        )
        return f"{what}, so their marks are unchanged: {', '.join(self.missing)}."
