"""Corrections: `corrections.csv`, read at every run.

    submission,problem,test,mark,reason
    canvas:1004,03,,20,Regraded by hand: only the docstring was broken.
    *,04,test_gradients,leave out,The sentence of the task could be read in two ways.

A line that matches nothing stops the run before grading.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.files import column_names, decoded_csv, read_rows, separator_in
from grader.gradebook.lines import BookLine, read_lines, read_points
from grader.result import Adjustment, ProblemResult, shown, total
from grader.text import cell

FILE = "corrections.csv"
LEAVE_OUT = "leave out"

_NEEDED = ("submission", "problem", "mark", "reason")
_COLUMNS = ("submission", "problem", "test", "mark", "reason")


@dataclass(frozen=True)
class Correction(BookLine):
    """One line of the file.

    Attributes:
        mark: the new mark; None for a test that is left out.
        reason: the sentence that student and instructor read.
    """

    file = FILE

    mark: float | None
    reason: str

    def change(self, earned: float, most: float) -> Adjustment:
        """Return the adjustment that the line makes.

        Args:
            earned: the points of its tests, or of the whole problem, so far.
            most: the maximum of these points.
        """
        if self.mark is None:
            return Adjustment(total([-earned]), f"Left out: {self.reason}", total([-most]))
        return Adjustment(total([self.mark, -earned]), f"Corrected: {self.reason}")


# Reading


def read_corrections(path: Path) -> list[Correction]:
    """Return the corrections in a file.

    Raises:
        UsageError: the file can't be read, or some lines are invalid.
    """
    return read_lines(path, _NEEDED, _correction)


def correction_line(path: Path, submission: str, problem: str, mark: float, reason: str) -> str:
    """Return a line of a file that sets the mark of a whole problem.

    Args:
        path: the file, which sets the order of the columns; it need not exist.
        submission: an identity.
        problem: an id or its number.
        mark: the mark.
        reason: the sentence that student and instructor read.
    """
    text = decoded_csv(path.read_bytes())[0] if path.exists() else ""
    columns = column_names(read_rows(path)) if text else _COLUMNS
    said = {"submission": cell(submission), "problem": problem, "reason": reason}
    row = said | {"mark": shown(mark)}
    written = io.StringIO()
    writer = csv.writer(written, delimiter=separator_in(text), lineterminator="")
    writer.writerow([row.get(name, "") for name in columns])
    return written.getvalue()


def _correction(line: int, row: dict[str, str]) -> Correction:
    who, problem, test = row["submission"], row["problem"], row.get("test", "")
    return Correction(line, who, problem, _mark(row["mark"]), row["reason"], test=test)


def _mark(text: str) -> float | None:
    return None if text.lower() == LEAVE_OUT else read_points("mark", text, LEAVE_OUT)


# Following


def follow(
    problem: ProblemResult, lines: Iterable[Correction], wrong: dict[str, None]
) -> tuple[list[Adjustment], bool]:
    """Return the adjustments of a problem, and whether they set its final mark.

    A line for one student takes precedence over a line for the whole class. Two different lines of
    one kind for the same tests contradict each other and have no effect.

    Args:
        problem: the result of the tests.
        lines: the corrections for this problem of this submission.
        wrong: collects messages about lines without effect.
    """
    lines = list(lines)
    own = [line for line in lines if not line.for_everybody]
    common = [line for line in lines if line.for_everybody]
    counting = [
        *_agreeing(problem, own, wrong),
        *(
            line
            for line in _agreeing(problem, common, wrong)
            if not any(_alike(problem, line, other) for other in own)
        ),
    ]
    changes: list[Adjustment] = []
    final = False
    for line in sorted(counting, key=lambda line: not line.test):  # single tests come first
        tests = line.tests(problem)
        before = () if line.test else changes
        earned = total([*(t.points for t in tests), *(a.points for a in before)])
        most = total([*(t.max for t in tests), *(a.max for a in before)])
        if line.mark is not None and line.mark > most:
            wrong[_too_much(line, most)] = None
            continue
        changes.append(line.change(earned, most))
        final = final or not line.test
    return [a for a in changes if a.points or a.max], final


def _agreeing(
    problem: ProblemResult, lines: Sequence[Correction], wrong: dict[str, None]
) -> list[Correction]:
    """Return the lines that no other line contradicts, each once."""
    found: list[Correction] = []
    for line in lines:
        alike = [other for other in lines if other != line and _alike(problem, line, other)]
        against = [o.line for o in alike if (o.mark, o.test) != (line.mark, line.test)]
        if against:
            which = " and ".join(map(str, against))
            wrong[line.corrected(f"line {which} says something else about the same")] = None
        elif not any(other in found for other in alike):
            found.append(line)
    return found


def _alike(problem: ProblemResult, one: Correction, other: Correction) -> bool:
    """Return whether two lines apply to the whole problem, or to a common test."""
    if not (one.test and other.test):
        return one.test == other.test
    return any(test in other.tests(problem) for test in one.tests(problem))


def _too_much(line: Correction, most: float) -> str:
    given = shown(line.mark or 0)
    return line.corrected(f"{given} is more than the {shown(most)} that there are")
