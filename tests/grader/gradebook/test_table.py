"""A platform's file keeps its encoding, its separator and its cells."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.errors import UsageError
from grader.gradebook.export.table import read_table

TEXTS = [
    "a,b,c\n1,2,3\n",
    "\ufeffa,b,c\r\n1,2,3\r\n",
    "a;b;c\r1;2\r",
    'a,b\n\n1,"2,5",3,4\n"""x"" y",\n',
    "a\tb\n陳\tΩ\n",
    "a,b\n  x , y \n",
    '"a, b",c\n1;2,3\n',
    '"a;b";"c\nd"\n1;2\n',
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_not_filled_in_stays(text: str) -> None:
    assert read_table(text.encode(), "f.csv").encoded() == text.encode()


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "cp1250"])
def test_an_encoding_is_kept(encoding: str) -> None:
    data = "Student,ID,X\nŠéñ,1004,\n".encode(encoding, "replace")
    table = read_table(data, "f.csv")
    table.fill(table.rows[0], 2, "7")
    assert table.encoded() == data.replace(b"1004,", b"1004,7")


def test_unicode_text_of_a_spreadsheet_is_read() -> None:
    data = "Student\tID\nŠéñ\t1004\n".encode("utf-16")
    table = read_table(data, "f.csv")
    assert table.rows[0].value(0) == "Šéñ"
    assert table.encoded() == data


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # no clock judges it
@given(st.lists(st.lists(st.text(alphabet='a",;\n\r é陳 =', max_size=5), min_size=2, max_size=4)))
def test_every_cell_is_read_and_written(rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["name", "id", "more"], *rows])
    table = read_table(text.getvalue().encode(), "f.csv")
    assert [row.cells for row in table.rows] == rows
    again = read_table(table.encoded(), "f.csv")
    assert [row.cells for row in again.rows] == rows


@pytest.mark.parametrize(("text", "separator"), [('"a b",c\n', ","), ('"a,b";"c"\n', ";")])
def test_quotation_marks_do_not_hide_the_separator(text: str, separator: str) -> None:
    table = read_table(text.encode(), "f.csv")
    assert (table.separator, len(table.columns)) == (separator, 2)


def test_a_cell_is_filled_in() -> None:
    table = read_table(b'a,b\n1,""\n2,\n3\n"4,5",\n', "f.csv")
    for row in table.rows:
        table.fill(row, 1, "8.5")
    assert table.encoded() == b'a,b\n1,8.5\n2,8.5\n3,8.5\n"4,5",8.5\n'


def test_a_column_is_added_behind_all_others() -> None:
    table = read_table(b"a,b\r\n1,2\r\n\r\n3\r\n4,5\r\n", "f.csv")
    table.add_column("Week 3, again")
    assert table.encoded() == b'a,b,"Week 3, again"\r\n1,2,\r\n\r\n3,,\r\n4,5,\r\n'


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    table = read_table(b'a,b\n"1\n\n",2\n3,4\n', "f.csv")
    assert [row.line for row in table.rows] == [2, 5]


@pytest.mark.parametrize("data", [b"", b"a,b\n\0", b'a,b\n"1,2\n', "\ufeff".encode(), b"\xff\xfea"])
def test_what_is_no_table_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"f\.csv"):
        read_table(data, "f.csv")
