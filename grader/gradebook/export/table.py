"""A platform's CSV file, in which single cells change.

Encoding, separator and line endings are kept.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field

from grader.errors import UsageError
from grader.files import csv_rows, decoded_csv, separator_in
from grader.gradebook.lines import read_points
from grader.text import quoted


@dataclass
class Row:
    """One record of the file.

    Attributes:
        line: the number of its first line.
        cells: the cells.
    """

    line: int
    cells: list[str]

    def value(self, column: int) -> str:
        """Return a cell without surrounding blanks."""
        return self.cells[column].strip() if column < len(self.cells) else ""


@dataclass
class Table:
    """The header and the rows of the file.

    Attributes:
        name: the name of the file, for messages.
        encoding: of the file.
        separator: between cells.
        ending: of a line.
        header: the names of the columns.
        rows: all other rows.
    """

    name: str
    encoding: str
    separator: str
    ending: str
    header: Row
    rows: list[Row] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [self.header.value(index) for index in range(len(self.header.cells))]

    def present(self, *names: str) -> list[int]:
        """Return the existing columns with these names, in any case and in this order."""
        columns = [name.lower() for name in self.columns]
        return [columns.index(name.lower()) for name in names if name and name.lower() in columns]

    def needed(self, *names: str) -> int:
        """Return the first column with one of these names.

        Raises:
            UsageError: there is none.
        """
        present = self.present(*names)
        if not present:
            there = ", ".join(quoted(name) for name in self.columns if name)
            has = f"It has: {there}." if there else "Its first line is empty."
            raise UsageError(f"{self.name} has no column {names[0]!r}. {has}")
        return present[0]

    def points(self, row: Row, column: int) -> float | None:
        """Return the number of points in a cell; None if it is empty.

        Raises:
            UsageError: the cell is no number.
        """
        text = row.value(column)
        try:
            return read_points(self.columns[column], text) if text else None
        except ValueError as error:
            raise UsageError(f"{self.name}, line {row.line}: {error}.") from None

    def fill(self, row: Row, column: int, text: str) -> None:
        """Write a text into a cell."""
        row.cells += [""] * (column + 1 - len(row.cells))
        row.cells[column] = text

    def add_column(self, name: str) -> int:
        """Add a column at the end and return its index."""
        column = len(self.header.cells)
        for row in self.rows:
            if any(map(str.strip, row.cells)):
                self.fill(row, column, "")
        self.fill(self.header, column, name)
        return column

    def encoded(self) -> bytes:
        """Return the file's bytes."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self.separator, lineterminator=self.ending)
        writer.writerows(row.cells for row in [self.header, *self.rows])
        return text.getvalue().encode(self.encoding, "surrogateescape")


def read_table(data: bytes, name: str) -> Table:
    """Read a CSV file.

    Args:
        data: the bytes.
        name: the name of the file, for messages.

    Raises:
        UsageError: it is no CSV file.
    """
    try:
        try:
            text, encoding = decoded_csv(data)
        except UnicodeDecodeError as error:
            if error.encoding != "utf-8":
                raise
            # As Excel writes it; bytes are kept, and ids can be read in any older encoding.
            encoding = "cp1252"
            text = data.decode(encoding, "surrogateescape")
        separator = separator_in(text)
        rows = [Row(line, cells) for line, cells in csv_rows(text, separator)]
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{name} is no CSV file: {error}.") from None
    if not rows:
        raise UsageError(f"{name} is empty.")
    first = io.StringIO(text, newline="").readline()
    ending = first[len(first.rstrip("\r\n")) :] or "\n"
    return Table(name, encoding, separator, ending, rows[0], rows[1:])
