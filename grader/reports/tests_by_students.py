"""What the tests did that a class wrote: which mistake nobody caught, and who refused what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean

from grader.reports.display_names import Person, by_name, people
from grader.result import BreakResult, SubmissionResult, shown
from grader.text import counted, some

_MOST_NAMED = 5


@dataclass
class OwnTestsRow:
    """How the tests did that students wrote for one problem.

    Attributes:
        problem: the problem's id.
        judged: what became of each file.
        max: what one is worth, without the bonus.
        open: whose tests a single right file refuses, and what is to be said of that.
        refusing: whose tests refuse several, and what is to be said of it.
        repeating: who handed in visible tests of the course, and what is to be said of it.
        unusable: whose could not be judged, and why.
    """

    problem: str
    judged: list[BreakResult] = field(default_factory=list)
    max: float = 0.0
    open: list[tuple[Person, str]] = field(default_factory=list)
    refusing: list[tuple[Person, str]] = field(default_factory=list)
    repeating: list[tuple[Person, str]] = field(default_factory=list)
    unusable: list[tuple[Person, str]] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """What they earned in the mean."""
        return mean(each.points for each in self.judged)

    @property
    def core_missed(self) -> dict[str, str]:
        """The mistakes of the core that nobody caught: what is wrong in each, by its name."""
        return _in_all([each.core_missed for each in self._usable])

    @property
    def missed(self) -> list[str]:
        """The names of the other mistakes that nobody caught."""
        return [*_in_all([dict.fromkeys(each.missed, "") for each in self._usable])]

    @property
    def folded(self) -> list[tuple[str, list[tuple[Person | None, str]]]]:
        """Return what there is to unfold: what it is, and a line each; of whom, if of anybody."""
        beside = [(None, name) for name in self.missed]
        every: list[tuple[str, Sequence[tuple[Person | None, str]]]] = [
            ("beside the core that nobody caught", beside),
            ("whose tests refuse right files", self.refusing),
            ("who repeat visible tests", self.repeating),
            ("whose tests could not be judged", self.unusable),
        ]
        return [(told, [*some]) for told, some in every if some]

    @property
    def _usable(self) -> list[BreakResult]:
        """Return the files that count: tests that refuse everything would catch everything."""
        return [each for each in self.judged if each.accepts_all or each.is_open]

    def __str__(self) -> str:
        """Return it as a line."""
        told = f"Tests that students wrote for {self.problem}: "
        told += f"{counted(len(self.judged), 'file')}, "
        told += f"mean {shown(self.mean)} of {shown(self.max)} points."
        if self.open:
            told += f" To look at: {len(self.open)}, refused by one right file each."
        nobody = [*self.core_missed, *self.missed]
        if nobody:
            told += f" Nobody caught: {some(nobody, _MOST_NAMED)}."
        return told


def _in_all(missed: Sequence[dict[str, str]]) -> dict[str, str]:
    """Return what is missed by all, if there is anybody."""
    first, *others = missed or [{}]
    return {name: text for name, text in first.items() if all(name in each for each in others)}


def tests_by_students(results: Iterable[SubmissionResult]) -> list[OwnTestsRow]:
    """Return a row for each problem that somebody wrote tests for, in the order of the course."""
    results = by_name(results)
    who = people(results)
    rows: dict[str, OwnTestsRow] = {}
    for result in results:
        for problem in result.problems:
            if problem.own_tests is not None:
                row = rows.setdefault(problem.id, OwnTestsRow(problem.id))
                _take(row, problem.own_tests, who[result.submission])
    return [rows[id] for id in sorted(rows)]


def _take(row: OwnTestsRow, found: BreakResult, person: Person) -> None:
    row.judged.append(found)
    row.max = max(row.max, found.max)
    if found.reason:
        row.unusable.append((person, found.reason))
    if found.repeats:
        row.repeating.append((person, ", ".join(found.repeats)))
    if found.refused:
        several = row.open if found.is_open else row.refusing
        several.append((person, " ".join([f"{found.about_refusals()}.", *found.refusals])))
