"""Corrections: `corrections.csv`, read at every run.

    submission,problem,test,mark,reason
    canvas:1004,03,,20,Regraded by hand: only the docstring was broken.
    *,04,test_gradients,leave out,The sentence of the task could be read in two ways.

A line that matches nothing stops the run before grading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.csv_table import csv_line, read_table
from grader.gradebook.lines import BookLine, read_points, undisputed
from grader.result import Adjustment, ProblemResult, TestResult, shown, total

FILE = "corrections.csv"
LEAVE_OUT = "leave out"

_COLUMNS = ("submission", "problem", "test", "mark", "reason")


@dataclass(frozen=True)
class Correction(BookLine):
    """One line of the file."""

    file = FILE
    needed = ("submission", "problem", "mark", "reason")

    @property
    def test(self) -> str:
        """A test of the problem, with all its cases or one; empty for the whole problem."""
        return self.cells.get("test", "")

    @property
    def value(self) -> float | None:
        """The new mark; None for tests that are left out."""
        text = self.cells["mark"]
        return None if text.lower() == LEAVE_OUT else read_points("mark", text, LEAVE_OUT)

    def check(self) -> None:
        """Check the mark."""
        _ = self.value

    def tests(self, problem: ProblemResult) -> list[TestResult]:
        """Return the tests of a problem that the line applies to."""
        return [test for test in problem.tests if self.test in ("", test.id, test.name)]

    def parts(self, problem: ProblemResult) -> frozenset[str]:
        """Return the ids of the tests, or an empty text for the whole problem."""
        return frozenset(test.id for test in self.tests(problem)) if self.test else frozenset([""])

    def change(self, earned: float, most: float) -> Adjustment:
        """Return the adjustment that the line makes.

        Args:
            earned: the points of its tests, or of the whole problem, so far.
            most: the maximum of these points.
        """
        reason = self.cells["reason"]
        if self.value is None:
            return Adjustment(total([-earned]), f"Left out: {reason}", total([-most]))
        return Adjustment(total([self.value, -earned]), f"Corrected: {reason}")


def corrected(
    problem: ProblemResult, lines: Sequence[Correction], wrong: dict[str, None]
) -> list[Adjustment]:
    """Return the adjustments of a problem, single tests first.

    Args:
        problem: the result of the tests.
        lines: the corrections for this problem of one student.
        wrong: collects messages about lines without effect.
    """
    changes: list[Adjustment] = []
    for line in sorted(undisputed(lines, problem, wrong), key=lambda line: not line.test):
        tests = line.tests(problem)
        before = () if line.test else changes
        earned = total([*(t.points for t in tests), *(a.points for a in before)])
        most = total([*(t.max for t in tests), *(a.max for a in before)])
        if line.value is not None and line.value > most:
            why = f"{shown(line.value)} is more than the {shown(most)} that there are"
            wrong[line.without_effect(why)] = None
        else:
            changes.append(line.change(earned, most))
    return [each for each in changes if each.points or each.max]


def correction_line(path: Path, submission: str, problem: str, mark: float, reason: str) -> str:
    """Return a line of a file that sets the mark of a whole problem.

    Args:
        path: the file, which sets the order of the columns; it need not exist.
        submission: an identity.
        problem: an id or its number.
        mark: the mark.
        reason: the sentence that student and instructor read.
    """
    row = {"submission": submission, "problem": problem, "mark": shown(mark), "reason": reason}
    if not (path.exists() and path.read_bytes().strip()):
        return csv_line([row.get(name, "") for name in _COLUMNS])
    table = read_table(path)
    return csv_line([row.get(name.lower(), "") for name in table.columns], table.separator)
