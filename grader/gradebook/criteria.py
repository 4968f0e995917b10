"""Points given by hand, `criteria.csv`, in addition to the points of the tests.

    submission,problem,criterion,points,max,comment
    canvas:1004,03,Style,4,5,Clear names; the mask is built twice.
    canvas:1005,03,Style,5,5,

Each line gives one student points for one criterion of a problem. Lateness and corrections do not
change these points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.gradebook.lines import BookLine, number_of, read_lines, read_points
from grader.result import Adjustment, shown
from grader.text import quoted

FILE = "criteria.csv"

_NEEDED = ("submission", "problem", "criterion", "points", "max")


@dataclass(frozen=True)
class ByHand(BookLine):
    """One line of the file.

    Attributes:
        criterion: the name of the criterion.
        points: the points.
        max: the maximum of the criterion.
        comment: text for the student; may be empty.
    """

    file = FILE

    criterion: str
    points: float
    max: float
    comment: str = ""

    def change(self) -> Adjustment:
        """Return the adjustment that the line makes."""
        reason = f"{self.criterion}. {self.comment}" if self.comment else self.criterion
        return Adjustment(self.points, reason, self.max)


def read_criteria(path: Path) -> list[ByHand]:
    """Return the points given by hand.

    Raises:
        UsageError: the file can't be read, or some lines are invalid: for example, two lines give
            different maxima for one criterion.
    """
    worth: dict[tuple[str, str], ByHand] = {}

    def by_hand(line: int, row: dict[str, str]) -> ByHand:
        found = _by_hand(line, row)
        key = number_of(found.problem), found.criterion.casefold()
        first = worth.setdefault(key, found)
        if first.max != found.max:
            criterion = quoted(found.criterion)
            raise ValueError(f"{criterion} is out of {shown(first.max)} in line {first.line}")
        return found

    return read_lines(path, _NEEDED, by_hand)


def given_by_hand(found: Iterable[ByHand], wrong: dict[str, None]) -> list[Adjustment]:
    """Return the adjustments of one problem of one submission.

    Args:
        found: the lines for it.
        wrong: collects messages about lines without effect.
    """
    of: dict[str, list[ByHand]] = {}
    for each in found:
        of.setdefault(each.criterion.casefold(), []).append(each)
    changes = []
    for same in of.values():
        if len({(each.points, each.comment) for each in same}) == 1:
            changes.append(same[0].change())
            continue
        numbers = " and ".join(str(each.line) for each in same[1:])
        why = f"line {numbers} gives something else for the same"
        wrong[same[0].corrected(why)] = None
    return changes


def lacking(lines_by_person: Sequence[tuple[str, Sequence[ByHand]]], problem: str) -> list[str]:
    """Return a message for each criterion of a problem that is incomplete.

    Args:
        lines_by_person: the graded students, each with the name and the lines.
        problem: its id.
    """
    criteria = {
        each.criterion.casefold(): each.criterion for _, own in lines_by_person for each in own
    }
    found = []
    for key, criterion in criteria.items():
        without = [
            name
            for name, own in lines_by_person
            if key not in {each.criterion.casefold() for each in own}
        ]
        if without:
            found.append(
                f"{FILE}: no points yet for {quoted(criterion)} in {problem}: {', '.join(without)}."
            )
    return found


def _by_hand(line: int, row: dict[str, str]) -> ByHand:
    points, most = read_points("points", row["points"]), read_points("max", row["max"])
    if points > most:
        raise ValueError(f"{shown(points)} is more than the {shown(most)} that there are")
    return ByHand(
        line,
        row["submission"],
        row["problem"],
        row["criterion"],
        points,
        most,
        row.get("comment", ""),
    )
