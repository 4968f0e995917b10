"""Read and change CSV files in the dialects of spreadsheets."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from grader.errors import UsageError
from grader.text import cell, quoted

_SEPARATORS = ",;\t"
_DECLARED = re.compile(rf'"?sep=([{_SEPARATORS}])"?(?:\r?\n|\Z)', re.IGNORECASE)
"""A first line such as `sep=;`, which declares the separator for Excel."""


@dataclass
class Row:
    """One row of a CSV file. A row may span several lines of the file.

    Attributes:
        line: the number of its first line in the file.
        cells: the texts of its cells.
    """

    line: int
    cells: list[str]

    def value(self, column: int) -> str:
        """Return the text in a column without surrounding blanks, or "" if the row is too short."""
        return self.cells[column].strip() if column < len(self.cells) else ""

    @property
    def is_empty(self) -> bool:
        """Whether all cells are empty."""
        return not any(map(str.strip, self.cells))


@dataclass
class Table:
    """The content of a CSV file, with its encoding, separator and line ending.

    Attributes:
        name: the name of the file, for messages.
        encoding: the encoding of the file.
        separator: the separator of cells.
        ending: the line ending.
        declared: the line before the header that declares the separator, or "".
        header: the row with the names of the columns.
        rows: the rows below the header.
    """

    name: str
    encoding: str
    separator: str
    ending: str
    declared: str
    header: Row
    rows: list[Row]

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [name.strip() for name in self.header.cells]

    def present(self, *names: str) -> list[int]:
        """Return the index of the column for each name. Skip names without a column.

        Upper and lower case are not distinguished.
        """
        columns = [name.lower() for name in self.columns]
        return [columns.index(name.lower()) for name in names if name and name.lower() in columns]

    def needed(self, *names: str) -> int:
        """Return the index of a required column.

        Args:
            names: alternative names of the column. The first one that exists is used.

        Raises:
            UsageError: no column has one of these names.
        """
        present = self.present(*names)
        if not present:
            existing = ", ".join(quoted(name) for name in self.columns if name)
            has = f"It has: {existing}." if existing else "Its first line is empty."
            raise UsageError(f"{self.name} has no column {names[0]!r}. {has}")
        return present[0]

    def fill(self, row: Row, column: int, text: str) -> None:
        """Write a text into a cell."""
        row.cells += [""] * (column + 1 - len(row.cells))
        row.cells[column] = text

    def add_column(self, name: str) -> int:
        """Add a column at the end and return its index."""
        column = len(self.header.cells)
        for row in self.rows:
            if not row.is_empty:
                self.fill(row, column, "")
        self.fill(self.header, column, name)
        return column

    def encoded(self) -> bytes:
        """Return the table as a CSV file with the original encoding, separator and line ending."""
        text = io.StringIO(newline="")
        text.write(self.declared)
        writer = csv.writer(text, delimiter=self.separator, lineterminator=self.ending)
        writer.writerows(row.cells for row in [self.header, *self.rows])
        return text.getvalue().encode(self.encoding, "surrogateescape")


def read_table(path: Path, *, comments: bool = True) -> Table:
    """Read a CSV file and omit its empty rows.

    Args:
        path: the file.
        comments: whether to skip rows that begin with `#`.

    Raises:
        UsageError: the file is empty, is not CSV in UTF-8 or UTF-16, or can't be read.
    """
    try:
        table = parse_table(path.read_bytes(), str(path))
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}.") from None
    skipped = "#" if comments else None
    rows = [table.header, *table.rows]
    rows = [row for row in rows if not row.is_empty and row.cells[0][:1] != skipped]
    if not rows:
        raise UsageError(f"{path} is empty.")
    return replace(table, header=rows[0], rows=rows[1:])


def parse_table(data: bytes, name: str, *, any_encoding: bool = False) -> Table:
    """Return the table in the bytes of a CSV file, including its empty rows.

    Args:
        data: the bytes.
        name: the name of the file, for messages.
        any_encoding: whether to decode text that is not UTF-8 as cp1252, an encoding of Excel.
            Letters in names may then be wrong. Ids are correct, and unchanged cells are written
            with the same bytes.

    Raises:
        UsageError: the data is empty, or not CSV.
    """
    try:
        text, encoding = _decoded(data, any_encoding=any_encoding)
        match = _DECLARED.match(text)
        declared = match[0] if match else ""
        text = text.removeprefix(declared)
        separator = match[1] if match else _separator_in(text)
        rows = [*_rows(text, separator, first_line=2 if match else 1)]
    except UnicodeError:
        raise UsageError(
            f"{name} is not text in UTF-8. In a spreadsheet, save it as {quoted('CSV UTF-8')}."
        ) from None
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{name} is not a CSV file: {error}.") from None
    if not rows:
        raise UsageError(f"{name} is empty.")
    first = io.StringIO(text, newline="").readline()
    ending = first[len(first.rstrip("\r\n")) :] or "\n"
    return Table(name, encoding, separator, ending, declared, rows[0], rows[1:])


def csv_line(cells: Iterable[str], separator: str = ",") -> str:
    """Return a line of a CSV file in which formulas are escaped."""
    text = io.StringIO()
    csv.writer(text, delimiter=separator, lineterminator="").writerow(map(cell, cells))
    return text.getvalue()


def _decoded(data: bytes, *, any_encoding: bool) -> tuple[str, str]:
    """Decode UTF-8, or UTF-16 with a byte order mark. Return the text and the encoding's name.

    Raises:
        ValueError: the data is not text.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16"), "utf-16"
    if b"\0" in data:
        raise ValueError("it contains zero bytes")
    encoding = "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"
    try:
        return data.decode(encoding), encoding
    except UnicodeDecodeError:
        if not any_encoding:
            raise
    return data.decode("cp1252", "surrogateescape"), "cp1252"


def _separator_in(text: str) -> str:
    """Return the separator that splits the first row of a CSV file into the most cells."""
    lines = (line for line in text.splitlines(keepends=True) if line[0] not in "#\r\n")
    first = next(lines, "") + "".join(lines)  # a cell may span several lines
    return max(_SEPARATORS, key=lambda separator: _number_of_cells(first, separator))


def _number_of_cells(text: str, separator: str) -> int:
    """Return the number of cells in the first row, or 0 if it can't be read with this separator."""
    try:
        return next((len(row.cells) for row in _rows(text, separator)), 0)
    except csv.Error:
        return 0


def _rows(text: str, separator: str, first_line: int = 1) -> Iterator[Row]:
    """Yield the rows of a CSV file.

    Args:
        text: the file's text.
        separator: the separator of cells.
        first_line: the line number of the first row.

    Raises:
        csv.Error: the text is not CSV, for example because a quotation mark is never closed.
    """
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    line = first_line
    for cells in reader:
        yield Row(line, cells)
        line = first_line + reader.line_num
