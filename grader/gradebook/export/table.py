"""A platform's CSV file, of which single cells can be filled in and every other byte stays.

The bytes are never read as names or letters but where they are ASCII: a file in another encoding
comes out as it came in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from grader.errors import UsageError

_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SEPARATORS = ",;\t"


@dataclass
class Row:
    r"""One record of the file.

    Attributes:
        line: where it begins.
        cells: as they stand in the file, with their quotation marks.
        ending: what ends the record: `\n`, `\r\n`, `\r`, or nothing at the end of the file.
    """

    line: int
    cells: list[str]
    ending: str

    def value(self, column: int) -> str:
        """Return what a cell says, without quotation marks and blanks around it."""
        return unquoted(self.cells[column]).strip() if column < len(self.cells) else ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands in it."""
        return not any(map(str.strip, self.cells))


@dataclass
class Table:
    """The file: its header and the rows below it."""

    start: str
    separator: str
    header: Row
    rows: list[Row] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, as they are read."""
        return [self.header.value(index) for index in range(len(self.header.cells))]

    def column(self, *names: str) -> int | None:
        """Return where the first column of one of these names is; small and large are alike."""
        wanted = {name.lower() for name in names}
        return next((n for n, name in enumerate(self.columns) if name.lower() in wanted), None)

    def fill(self, row: Row, column: int, text: str) -> None:
        """Put a text into a cell; what stood there in quotation marks is put into some again."""
        row.cells += [""] * (column + 1 - len(row.cells))
        is_quoted = row.cells[column].lstrip().startswith('"')
        row.cells[column] = as_cell(text, self.separator, always=is_quoted)

    def add_column(self, name: str) -> int:
        """Add a column behind all others and return where it is."""
        column = len(self.header.cells)
        for row in [self.header, *(row for row in self.rows if not row.is_empty)]:
            row.cells += [""] * (column + 1 - len(row.cells))
        self.fill(self.header, column, name)
        return column

    def encoded(self) -> bytes:
        """Return the file's bytes."""
        parts = [self.start]
        for row in [self.header, *self.rows]:
            parts += [self.separator.join(row.cells), row.ending]
        return "".join(parts).encode("utf-8", "surrogateescape")


def read_table(data: bytes, name: str) -> Table:
    """Return the table in a file.

    Args:
        data: the file's bytes.
        name: what it is called, for sentences.

    Raises:
        UsageError: it is no CSV file.
    """
    if data.startswith(_UTF_16) or b"\0" in data:
        raise UsageError(f"{name} is no CSV file in UTF-8; give the file as it was downloaded.")
    text = data.decode("utf-8", "surrogateescape")
    start = _BOM if text.startswith(_BOM) else ""
    text = text.removeprefix(start)
    try:
        separator = max(_SEPARATORS, key=lambda mark: len(next(_records(text, mark)).cells))
        header, *rows = _records(text, separator)
    except StopIteration:
        raise UsageError(f"{name} is empty.") from None
    except ValueError as error:
        raise UsageError(f"{name} is no CSV file: {error}.") from None
    return Table(start, separator, header, rows)


def unquoted(cell: str) -> str:
    """Return what a cell of a file says."""
    return cell[1:-1].replace('""', '"') if _is_quoted(cell) else cell


def as_cell(text: str, separator: str, *, always: bool = False) -> str:
    """Return text as a cell of a file, in quotation marks where they are needed."""
    needed = any(sign in text for sign in (separator, '"', "\n", "\r")) or text != text.strip()
    return '"' + text.replace('"', '""') + '"' if always or needed else text


def _is_quoted(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == '"'


def _records(text: str, separator: str) -> Iterator[Row]:
    """Give the records of a text.

    Raises:
        ValueError: a quotation mark is never closed.
    """
    at, line = 0, 1
    while at < len(text):
        cells: list[str] = []
        begin = at
        while True:
            end = _end_of_cell(text, at, separator, line)
            cells.append(text[at:end])
            at = end + 1
            if end >= len(text) or text[end] != separator:
                break
        ending = _ending(text, end)
        at = end + len(ending)
        yield Row(line, cells, ending)
        line += _lines(text[begin:at])


def _end_of_cell(text: str, at: int, separator: str, line: int) -> int:
    """Return where the cell that begins at a place ends."""
    if text.startswith('"', at):
        at += 1
        while True:
            at = text.find('"', at) + 1
            if not at:
                raise ValueError(f"a quotation mark in line {line} is never closed")
            if not text.startswith('"', at):
                break
            at += 1
    ends = {separator, "\r", "\n"}
    while at < len(text) and text[at] not in ends:
        at += 1
    return at


def _ending(text: str, at: int) -> str:
    return "\r\n" if text.startswith("\r\n", at) else text[at : at + 1]


def _lines(text: str) -> int:
    """Return how many lines a text has, counted as an editor does."""
    return text.count("\n") + text.count("\r") - text.count("\r\n")
