"""Read the lines of `corrections.csv` and `criteria.csv`.

    submission,problem,test,mark,reason
    canvas:1004,03,,20,Regraded by hand: only the docstring was broken.
    *,04,test_gradients,leave out,The sentence of the task could be read in two ways.

    submission,problem,criterion,points,max,comment
    canvas:1004,03,Style,4,5,Clear names; the mask is built twice.
    canvas:1005,03,Style,5,5,

A correction sets a mark, or leaves tests out. A criterion adds points. Lateness and corrections do
not change the points of a criterion. Empty lines and lines that begin with `#` are skipped. If a
line matches no student or problem, the run stops before grading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from grader.csv_table import csv_line, read_table
from grader.errors import UsageError
from grader.result import Adjustment, ProblemResult, TestResult, shown, total
from grader.text import MOST_POINTS, from_cell, parse_points, quoted

EVERYBODY = "*"
LEAVE_OUT = "leave out"

_COLUMNS = ("submission", "problem", "test", "mark", "reason")

_LONGEST = 40
"""The maximum number of characters of a cell in a message."""


@dataclass(frozen=True)
class BookLine:
    """One line of `corrections.csv` or `criteria.csv`.

    Attributes:
        number: the line number.
        cells: maps the name of each column to the text of its cell.
        separator: the separator between cells.
    """

    file: ClassVar[str]
    needed: ClassVar[Sequence[str]]
    """The columns that must exist and must not be empty."""

    number: int
    cells: Mapping[str, str]
    separator: str

    @property
    def submission(self) -> str:
        """The name or identity of a student, or `*` for the whole class."""
        return self.cells["submission"]

    @property
    def problem(self) -> str:
        """The id of a problem, or its number."""
        return self.cells["problem"]

    @property
    def for_everybody(self) -> bool:
        """Whether the line applies to the whole class."""
        return self.submission == EVERYBODY

    @property
    def value(self) -> object:
        """The mark or the points that the line sets.

        Two lines about the same test or criterion contradict each other if their values differ.

        Raises:
            ValueError: a cell is invalid.
        """
        raise NotImplementedError

    def parts(self, problem: ProblemResult) -> frozenset[str]:
        """Return the ids of the tests or criteria that the line changes in `problem`."""
        raise NotImplementedError

    def concerns(self, problem: str) -> bool:
        """Return whether the line is about the problem with this id."""
        return problem == self.problem or number_of(problem) == self.problem.zfill(2)

    def without_effect(self, why: str) -> str:
        """Return the message that this line has no effect.

        Args:
            why: the reason, without a full stop.
        """
        return f"{self.file}, line {self.number}, has no effect: {why}."

    def with_advice(self, why: str, column: str = "", instead: Sequence[str] = ()) -> str:
        """Return the message that this line has no effect, followed by corrected lines.

        Args:
            why: the reason, without a full stop.
            column: the column with the wrong text.
            instead: possible replacements for the wrong text. If it is empty, the message shows
                how to comment the line out.
        """
        rows = [{**self.cells, column: each} for each in instead]
        lines = [csv_line(row.values(), self.separator) for row in rows]
        way = "Write instead"
        if not lines:
            lines = [f"# {csv_line(self.cells.values(), self.separator)}"]
            way = "Change the line, or comment it out"
        return "\n".join([f"{self.without_effect(why)} {way}:", *lines])


class Correction(BookLine):
    """One line of `corrections.csv`."""

    file = "corrections.csv"
    needed = ("submission", "problem", "mark", "reason")

    @property
    def test(self) -> str:
        """The name of a test or the id of a parametrized case; empty for the whole problem."""
        return self.cells.get("test", "")

    @property
    def value(self) -> float | None:
        """The new mark; None for tests that are left out."""
        text = self.cells["mark"]
        return None if text.lower() == LEAVE_OUT else read_points("mark", text, LEAVE_OUT)

    def tests(self, problem: ProblemResult) -> list[TestResult]:
        """Return the tests in `problem` to which the line applies."""
        return [test for test in problem.tests if self.test in ("", test.id, test.name)]

    def parts(self, problem: ProblemResult) -> frozenset[str]:
        """Return the ids of the tests to change. An empty id means the whole problem."""
        return frozenset(test.id for test in self.tests(problem)) if self.test else frozenset([""])


class ByHand(BookLine):
    """One line of `criteria.csv`: the points of one student for one criterion of a problem."""

    file = "criteria.csv"
    needed = ("submission", "problem", "criterion", "points", "max")

    @property
    def value(self) -> Adjustment:
        """The points, the maximum and the comment of this line."""
        texts = self.cells["criterion"], self.cells.get("comment", "")
        points, most = (read_points(name, self.cells[name]) for name in ("points", "max"))
        if points > most:
            raise ValueError(f"{shown(points)} is more than the maximum, {shown(most)}")
        return Adjustment(points, ". ".join(filter(None, texts)), most)

    @property
    def key(self) -> str:
        """The name of the criterion in lower case."""
        return self.cells["criterion"].casefold()

    def parts(self, problem: ProblemResult) -> frozenset[str]:
        """Return the key of the criterion."""
        return frozenset([self.key])


Line = TypeVar("Line", bound=BookLine)


def read_lines(book: Path, kind: type[Line]) -> list[Line]:
    """Return the lines of one of the instructor's files. The file need not exist.

    Args:
        book: the folder of the files.
        kind: the class of the lines. Its `file` is the name of the file to read.

    Raises:
        UsageError: the file can't be read, or some lines are invalid.
    """
    path = book / kind.file
    if not path.exists():
        return []
    table = read_table(path)
    columns = [name.lower() for name in table.columns]
    if missing := [name for name in kind.needed if name not in columns]:
        raise UsageError(f"{path} has no column {', '.join(missing)} in its first line.")
    lines, invalid = [], []
    for row in table.rows:
        try:
            if len(row.cells) != len(columns):
                raise ValueError(f"it has {len(row.cells)} columns, not {len(columns)}")
            texts = [from_cell(text.strip()) for text in row.cells]
            line = kind(row.line, dict(zip(columns, texts, strict=True)), table.separator)
            if empty := [name for name in kind.needed if not line.cells[name]]:
                raise ValueError(f"its column {quoted(empty[0])} is empty")
            _ = line.value
            lines.append(line)
        except ValueError as error:
            invalid.append(f"{path.name}, line {row.line}: {error}.")
    if invalid:
        raise UsageError("\n".join(invalid))
    return lines


def read_criteria(book: Path) -> list[ByHand]:
    """Return the lines of `criteria.csv` in the folder `book`.

    Raises:
        UsageError: the file can't be read, some lines are invalid, or two lines contain different
            maxima for the same criterion.
    """
    lines = read_lines(book, ByHand)
    firsts: dict[tuple[str, str], ByHand] = {}
    for line in lines:
        first = firsts.setdefault((number_of(line.problem), line.key), line)
        if first.value.max != line.value.max:
            out_of = f"worth {shown(first.value.max)} in line {first.number}"
            criterion = quoted(line.cells["criterion"])
            raise UsageError(f"{ByHand.file}, line {line.number}: {criterion} is {out_of}.")
    return lines


def without_contradictions(
    lines: Sequence[Line], problem: ProblemResult, wrong: dict[str, None]
) -> list[Line]:
    """Return the lines that no other line contradicts. Leave out repeated lines.

    A line for one student takes precedence over a line for the whole class.

    Args:
        lines: the lines that apply to a problem of one student.
        problem: the result of this problem.
        wrong: messages about lines without effect are added to this dict.
    """
    kept: dict[frozenset[str], Line] = {}
    for line in sorted(lines, key=lambda line: line.for_everybody):
        parts = line.parts(problem)
        same = [other for other in lines if other.parts(problem) & parts]
        rivals = [
            str(other.number)
            for other in same
            if other.for_everybody == line.for_everybody
            and (other.value, other.parts(problem)) != (line.value, parts)
        ]
        if rivals:
            verb = "contradicts" if len(rivals) == 1 else "contradict"
            why = f"line {' and line '.join(rivals)} {verb} it"
            wrong[line.with_advice(why)] = None
        elif not line.for_everybody or all(other.for_everybody for other in same):
            kept.setdefault(parts, line)
    return [*kept.values()]


def corrected(
    problem: ProblemResult, lines: Sequence[Correction], wrong: dict[str, None]
) -> list[Adjustment]:
    """Return the adjustments that corrections make. Corrections of single tests come first.

    Args:
        problem: the result of a problem of one student.
        lines: the corrections that apply to this problem.
        wrong: messages about lines without effect are added to this dict.
    """
    changes: list[Adjustment] = []
    for line in sorted(
        without_contradictions(lines, problem, wrong), key=lambda line: not line.test
    ):
        tests, mark, reason = line.tests(problem), line.value, line.cells["reason"]
        before = () if line.test else changes
        earned = total([*(t.points for t in tests), *(a.points for a in before)])
        most = total([*(t.max for t in tests), *(a.max for a in before)])
        if mark is None:
            changes.append(Adjustment(total([-earned]), f"Left out: {reason}", total([-most])))
        elif round(mark, 2) > round(most, 2):
            why = f"{shown(mark)} is more than the maximum, {shown(most)}"
            wrong[line.with_advice(why)] = None
        else:
            mark = min(mark, most)  # reports show hundredths
            changes.append(Adjustment(total([mark, -earned]), f"Corrected: {reason}"))
    return [each for each in changes if each.points or each.max]


def correction_line(path: Path, submission: str, problem: str, mark: float, reason: str) -> str:
    """Return a line of `corrections.csv` that sets the mark of a whole problem.

    Args:
        path: the path of `corrections.csv`. If the file exists, its columns are used.
        submission: the identity of the student.
        problem: the id of the problem, or its number.
        mark: the mark.
        reason: a sentence that the student and the instructor read.
    """
    row = {"submission": submission, "problem": problem, "mark": shown(mark), "reason": reason}
    if not (path.exists() and path.read_bytes().strip()):
        return csv_line([row.get(name, "") for name in _COLUMNS])
    table = read_table(path)
    return csv_line([row.get(name.lower(), "") for name in table.columns], table.separator)


def number_of(problem: str) -> str:
    """Return the two-digit number of a problem. `problem` is its id or its number."""
    return problem.partition("-")[0].zfill(2)


def read_points(name: str, text: str, also: str = "") -> float:
    """Return the number of points in a cell.

    Args:
        name: the name of the column, for the error message.
        text: the text of the cell.
        also: a word that the cell may contain instead, for the error message; empty for none.

    Raises:
        ValueError: the cell contains no valid number.
    """
    points = parse_points(text)
    if points is None:
        more = f", or {also!r}" if also else ""
        short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        raise ValueError(
            f"{name!r} is {quoted(short)}. Write a number from 0 to {MOST_POINTS:,}, such as 2.5"
            f"{more}"
        )
    return points
