"""What is new since the last run: what the terminal says of it, and how the class page opens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from grader.reports.display_names import Person
from grader.reports.gradebook_csv import Change


@dataclass(frozen=True, kw_only=True)
class News:
    """What is new since the last run.

    Attributes:
        is_first: whether no run before it came to its end.
        changes: the marks that are not those of the gradebook before.
        new: who was not in the gradebook before.
        missing: who is known, and not in what says that it is the whole class: their rows are as
            they were.
        of_one_problem: whether only one problem was handed in.
        about_book: what does nothing in the instructor's own files, and why, and what is lacking.
    """

    is_first: bool = True
    changes: Sequence[Change] = ()
    new: Sequence[Person] = ()
    missing: Sequence[str] = ()
    of_one_problem: bool = False
    about_book: Sequence[str] = field(default_factory=tuple)

    @property
    def missing_line(self) -> str:
        """What is said of who is missing; empty when nobody is."""
        if not self.missing:
            return ""
        what = "Handed in nothing for this problem" if self.of_one_problem else "Missing now"
        return f"{what}, so as they were: {', '.join(self.missing)}."
