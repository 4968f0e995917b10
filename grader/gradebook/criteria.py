"""Points given by hand, `criteria.csv`, in addition to the points of the tests.

    submission,problem,criterion,points,max,comment
    canvas:1004,03,Style,4,5,Clear names; the mask is built twice.
    canvas:1005,03,Style,5,5,

Each line gives one student points for one criterion of a problem. Lateness and corrections do not
change these points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.errors import UsageError
from grader.gradebook.lines import BookLine, number_of, read_lines, read_points
from grader.result import Adjustment, ProblemResult, shown
from grader.text import quoted

FILE = "criteria.csv"


@dataclass(frozen=True)
class ByHand(BookLine):
    """One line of the file."""

    file = FILE
    needed = ("submission", "problem", "criterion", "points", "max")

    @property
    def value(self) -> Adjustment:
        """The adjustment that the line makes."""
        texts = self.cells["criterion"], self.cells.get("comment", "")
        points, most = (read_points(name, self.cells[name]) for name in ("points", "max"))
        return Adjustment(points, ". ".join(filter(None, texts)), most)

    @property
    def key(self) -> str:
        """The criterion, in small letters."""
        return self.cells["criterion"].casefold()

    def check(self) -> None:
        """Check that the points are at most the maximum."""
        points, most = self.value.points, self.value.max
        if points > most:
            raise ValueError(f"{shown(points)} is more than the {shown(most)} that there are")

    def parts(self, problem: ProblemResult) -> frozenset[str]:
        """Return the criterion."""
        return frozenset([self.key])


def read_criteria(path: Path) -> list[ByHand]:
    """Return the points given by hand.

    Raises:
        UsageError: the file can't be read, some lines are invalid, or two lines give different
            maxima for one criterion.
    """
    lines = read_lines(path, ByHand)
    firsts: dict[tuple[str, str], ByHand] = {}
    for line in lines:
        first = firsts.setdefault((number_of(line.problem), line.key), line)
        if first.value.max != line.value.max:
            out_of = f"out of {shown(first.value.max)} in line {first.number}"
            criterion = quoted(line.cells["criterion"])
            raise UsageError(f"{FILE}, line {line.number}: {criterion} is {out_of}.")
    return lines


def lacking(lines_by_person: Mapping[str, Sequence[ByHand]], problem: str) -> list[str]:
    """Return a message for each criterion of a problem that is incomplete.

    Args:
        lines_by_person: the lines of each graded student, by name.
        problem: its id.
    """
    criteria = {line.key: line for own in lines_by_person.values() for line in own}
    messages = []
    for key, line in criteria.items():
        without = [
            name for name, own in lines_by_person.items() if key not in {each.key for each in own}
        ]
        if without:
            criterion = f"{quoted(line.cells['criterion'])} in {problem}"
            messages.append(f"{FILE}: no points yet for {criterion}: {', '.join(without)}.")
    return messages
