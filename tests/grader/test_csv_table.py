"""A platform's file keeps its encoding, its separator and its cells."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.csv_table import Row, parse_table, read_table
from grader.errors import UsageError

TEXTS = [
    "a,b,c\n1,2,3\n",
    "\ufeffa,b,c\r\n1,2,3\r\n",
    "a;b;c\r1;2\r",
    'a,b\n\n1,"2,5",3,4\n"""x"" y",\n',
    "a\tb\n陳\tΩ\n",
    "a,b\n  x , y \n",
    '"a, b",c\n1;2,3\n',
    '"a;b";"c\nd"\n1;2\n',
    "sep=;\r\na;b,c\r\n1;2\r\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_an_unchanged_table_is_encoded_unchanged(text: str) -> None:
    assert parse_table(text.encode(), "f.csv", any_encoding=True).encoded() == text.encode()


@pytest.mark.parametrize("declared", ["sep=;", "SEP=;", '"sep=;"'])
def test_a_declared_separator_is_used(declared: str) -> None:
    table = parse_table(f"{declared}\r\nname;id\r\nAda,L,M;7\r\n".encode(), "f.csv")
    assert table.columns == ["name", "id"]
    assert [(row.line, row.cells) for row in table.rows] == [(3, ["Ada,L,M", "7"])]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # no time limit
@given(st.lists(st.lists(st.text(alphabet='a",;\n\r é陳 =', max_size=5), min_size=2, max_size=4)))
def test_every_cell_is_read_and_written(rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([["name", "id", "more"], *rows])
    table = parse_table(text.getvalue().encode(), "f.csv", any_encoding=True)
    assert [row.cells for row in table.rows] == rows
    again = parse_table(table.encoded(), "f.csv", any_encoding=True)
    assert [row.cells for row in again.rows] == rows


@pytest.mark.parametrize(("text", "separator"), [('"a b",c\n', ","), ('"a,b";"c"\n', ";")])
def test_quotation_marks_do_not_hide_the_separator(text: str, separator: str) -> None:
    table = parse_table(text.encode(), "f.csv", any_encoding=True)
    assert (table.separator, len(table.columns)) == (separator, 2)


def test_a_cell_is_filled_in() -> None:
    table = parse_table(b'a,b\n1,""\n2,\n3\n"4,5",\n', "f.csv", any_encoding=True)
    for row in table.rows:
        table.fill(row, 1, "8.5")
    assert table.encoded() == b'a,b\n1,8.5\n2,8.5\n3,8.5\n"4,5",8.5\n'


def test_a_column_is_added_at_the_end() -> None:
    table = parse_table(b"a,b\r\n1,2\r\n\r\n3\r\n4,5\r\n", "f.csv", any_encoding=True)
    table.add_column("Week 3, again")
    assert table.encoded() == b'a,b,"Week 3, again"\r\n1,2,\r\n\r\n3,,\r\n4,5,\r\n'


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    table = parse_table(b'a,b\n"1\n\n",2\n3,4\n', "f.csv", any_encoding=True)
    assert [row.line for row in table.rows] == [2, 5]


@pytest.mark.parametrize("data", [b"", b"a,b\n\0", b'a,b\n"1,2\n', "\ufeff".encode(), b"\xff\xfea"])
def test_invalid_tables_are_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"f\.csv"):
        parse_table(data, "f.csv", any_encoding=True)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le-bom"])
@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_lists_in_spreadsheet_encodings_are_read(tmp_path: Path, encoding: str, mark: str) -> None:
    text = mark.join(["name", "mark"]) + "\r\n" + mark.join(["Łukasz Żółć", '"1,5"']) + "\r\n"
    data = b"\xff\xfe" + text.encode("utf-16-le") if "bom" in encoding else text.encode(encoding)
    (tmp_path / "list.csv").write_bytes(data)
    table = read_table(tmp_path / "list.csv")
    assert (table.separator, table.columns) == (mark, ["name", "mark"])
    assert table.rows == [Row(2, ["Łukasz Żółć", "1,5"])]


def test_a_list_in_an_old_encoding_is_refused_with_advice(tmp_path: Path) -> None:
    """An old encoding can't be recognized, and a wrong guess would change the names of people."""
    (tmp_path / "list.csv").write_bytes("name\nJosé\n".encode("cp1252"))
    with pytest.raises(UsageError, match="In a spreadsheet, save it as 'CSV UTF-8'"):
        read_table(tmp_path / "list.csv")
