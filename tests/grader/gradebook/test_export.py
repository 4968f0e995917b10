"""An export fills the correct marks into a platform's file, and changes nothing else."""

from __future__ import annotations

import csv
import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.csv_table import parse_table
from grader.result import Adjustment, Status, SubmissionResult, TestResult
from tests.grader.gradebook.built import problem, result
from tests.grader.gradebook.platform_files import (
    CLASS,
    Student,
    as_csv,
    canvas_gradebook,
    moodle_worksheet,
)
from tests.grader.intake.uploads import write

Save = Callable[..., Path]
ID = "03-scaled-attention"


def canvas_file(folder: Path, *students: list[Student], **more: Any) -> Path:
    (folder / "grades.csv").write_bytes(canvas_gradebook(*students, **more))
    return folder / "grades.csv"


def moodle_file(folder: Path, *students: list[Student], **more: Any) -> Path:
    (folder / "Grades.csv").write_bytes(moodle_worksheet(*students, **more))
    return folder / "Grades.csv"


def result_for(student: Student, points: float, platform: str = "canvas") -> SubmissionResult:
    return result(
        f"s-{student.id}",
        problem(ID, points, 25),
        identity=f"{platform}:{student.id}",
        full_name=student.full_name,
    )


def export_lines(platform: str, file: Path, reports: Path, *options: str) -> list[str]:
    """Run `grader export`, and return the printed lines."""
    command = ["export", platform, str(file), "--reports", str(reports), *options]
    if not any(option.startswith(("--problem", "--total")) for option in options):
        command += ["--problem", "03"]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 0, run.output
    return run.output.splitlines()


def refusal(platform: str, file: Path, reports: Path, *options: str) -> str:
    """Run `grader export`, check that it writes nothing, and return its message."""
    before = {path: path.read_bytes() for path in file.parent.rglob("*") if path.is_file()}
    command = ["export", platform, str(file), "--reports", str(reports), *options]
    run = CliRunner().invoke(app, command)
    assert run.exit_code == 2, run.output
    after = {path: path.read_bytes() for path in file.parent.rglob("*") if path.is_file()}
    assert after == before
    return " ".join(run.output.split())


def cells(data: bytes, separator: str = ",") -> list[list[str]]:
    reader = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=separator)
    return list(reader)


def without_column(data: bytes, name: str) -> list[object]:
    """Return the whole table without one column."""
    table = parse_table(data, "", any_encoding=True)
    at = table.columns.index(name)
    rows = [table.header, *table.rows]
    others = [
        [*row.cells[:at], *row.cells[at + 1 :]] if row is not table.header else row.cells
        for row in rows
    ]
    return [table.encoding, table.separator, table.ending, others]


def marks_in(data: bytes, by: str, name: str, separator: str = ",") -> dict[str, str]:
    header, *rows = cells(data, separator)
    return {row[header.index(by)]: row[header.index(name)] for row in rows}


def filled_in(file: Path) -> dict[str, str]:
    """Return the filled-in marks, by the student's number on Canvas or Moodle."""
    columns = {"grades.csv": ("ID", "Week 3 (123456)"), "Grades.csv": ("Identifier", "Grade")}
    return marks_in(file.with_stem(f"{file.stem}-filled").read_bytes(), *columns[file.name])


@pytest.mark.parametrize("seed", range(3))
def test_marks_exported_to_canvas_are_read_back(seed: int, tmp_path: Path, saved: Save) -> None:
    rng = random.Random(seed)
    points = {s.id: rng.choice([0.0, 5.94, 12.5, 20.0, 25.0, 25 * 2 / 3]) for s in CLASS}
    reports = saved(*(result_for(s, points[s.id]) for s in rng.sample(CLASS, len(CLASS))))
    data = canvas_gradebook(rng.sample(CLASS, len(CLASS)), bom=bool(seed % 2))
    file = tmp_path / "grades.csv"
    file.write_bytes(data)
    messages = export_lines("canvas", file, reports, "--column", "123456")
    assert file.read_bytes() == data
    filled = (tmp_path / "grades-filled.csv").read_bytes()
    assert without_column(filled, "Week 3 (123456)") == without_column(data, "Week 3 (123456)")
    marks = marks_in(filled, "ID", "Week 3 (123456)")
    assert {id: float(mark) for id, mark in marks.items() if mark and id} == {
        str(id): round(value, 2) for id, value in points.items()
    }
    assert messages == [
        "17 marks filled in under 'Week 3 (123456)'.",
        f"Written: {tmp_path / 'grades-filled.csv'}.",
    ]
    again = export_lines("canvas", tmp_path / "grades-filled.csv", reports, "--column", "Week 3")
    assert again[0] == "0 marks filled in under 'Week 3 (123456)'; 17 were already correct."
    assert (tmp_path / "grades-filled-filled.csv").read_bytes() == filled


def test_a_new_column_is_added_in_canvas(tmp_path: Path, saved: Save) -> None:
    file = tmp_path / "grades.csv"
    file.write_bytes(data := canvas_gradebook())
    export_lines(
        "canvas", file, saved(result_for(CLASS[2], 20)), "--new-column", "Week 3, attention"
    )
    filled = (tmp_path / "grades-filled.csv").read_bytes()
    assert [row[:-1] for row in cells(filled)] == cells(data)
    last = {row[1]: row[-1] for row in cells(filled)}
    assert (last["1003"], last["1004"], last["ID"]) == ("20", "", "Week 3, attention")
    assert [row[-1] for row in cells(filled)[:3]] == ["Week 3, attention", "", "25"]


def test_the_column_is_needed_only_with_several_assignments(tmp_path: Path, saved: Save) -> None:
    reports = saved(result_for(CLASS[0], 20))
    file = canvas_file(tmp_path)
    asked = refusal("canvas", file, reports, "--problem", "03")
    assert "'Essay; one (55)', 'Week 3 (123456)'. Choose one with --column" in asked
    asked = refusal("canvas", file, reports, "--problem", "03", "--column", "Week 4")
    assert "grades.csv has no such column. The columns are: 'Essay; one (55)'" in asked
    own = refusal("canvas", file, reports, "--problem", "03", "--column", "Final Score")
    assert "grades.csv has no such column" in own
    file.write_bytes(canvas_gradebook().replace(b"Essay; one (55)", b"Essay; one     "))
    export_lines("canvas", file, reports)


def test_students_missing_on_either_side_are_listed(
    tmp_path: Path, saved: Save, snapshot: SnapshotAssertion
) -> None:
    file = canvas_file(tmp_path, CLASS[:3])
    failed = result_for(CLASS[2], 20)
    failed.problems[0].tests.append(TestResult("t", "t", True, 1, Status.INTERNAL))
    other = result("s-5", problem("01-softmax", 5, 10), identity="canvas:1001")
    stranger = result("eve", identity="eve")
    reports = saved(other, result_for(CLASS[4], 20), failed, stranger)
    messages = export_lines("canvas", file, reports, "--column", "Week 3")
    assert messages[:-1] == snapshot
    assert (tmp_path / "grades-filled.csv").read_bytes() == file.read_bytes()


def test_changed_marks_are_listed_and_locked_columns_unchanged(
    tmp_path: Path, saved: Save, snapshot: SnapshotAssertion
) -> None:
    marks = {1001: "18.00", 1002: "20.00", 1003: "EX", 1004: "N/A"}
    file = canvas_file(tmp_path, CLASS[:4], marks=marks)
    reports = saved(*(result_for(s, 20) for s in CLASS[:4]))
    messages = export_lines("canvas", file, reports, "--column", "Week 3")
    assert messages[:-1] == snapshot
    filled = filled_in(file)
    assert [filled[str(s.id)] for s in CLASS[:4]] == ["20", "20.00", "EX", "N/A"]


def test_a_locked_grade_in_moodle_is_unchanged(
    tmp_path: Path, saved: Save, snapshot: SnapshotAssertion
) -> None:
    file = moodle_file(tmp_path, CLASS[:3], marks={1001: "18.00"}, locked=(1001, 1003))
    reports = saved(*(result_for(s, 20, "moodle") for s in CLASS[:3]))
    messages = export_lines("moodle", file, reports)
    assert messages[:-1] == snapshot
    filled = filled_in(file)
    assert [*filled.values()] == ["18.00", "20", ""]


@pytest.mark.parametrize("most", ["nan", "-5", "25 points"])
def test_an_invalid_maximum_is_refused(most: str, tmp_path: Path, saved: Save) -> None:
    canvas = canvas_file(tmp_path, possible=most), saved(result_for(CLASS[0], 20))
    said = refusal("canvas", *canvas, "--problem", "03", "--column", "Week 3")
    moodle = moodle_file(tmp_path, most=most), saved(result_for(CLASS[0], 20, "moodle"))
    for text in (said, refusal("moodle", *moodle, "--problem", "03")):
        assert ".csv, line " in text
        assert "Write a number from 0 to 1,000,000, such as 2.5" in text


def test_a_mark_with_a_smaller_maximum_is_not_filled_in(tmp_path: Path, saved: Save) -> None:
    excused = result_for(CLASS[0], 20)
    reports = saved(excused, result_for(CLASS[1], 20))
    lines = "submission,problem,test,mark,reason\ncanvas:1001,03,test_cases[a],leave out,Ill\n"
    write(tmp_path / "book", {"corrections.csv": lines})
    file = canvas_file(tmp_path, CLASS[:2])
    messages = export_lines("canvas", file, reports, "--column", "Week 3")
    assert messages[0] == f"The book: {reports.parent / 'book'} (corrections.csv)."
    assert messages[2].startswith("Not filled in for Lovelace, Ada (1001): the mark is 20 of 22.5")
    assert filled_in(file)["1001"] == ""
    assert "Run `grader grade` again to update these students: Ada Lovelace." in messages[-2]
    file.write_bytes(canvas_gradebook(CLASS[:2], possible="100.00"))
    why = refusal("canvas", file, reports, "--problem", "03", "--column", "Week 3")
    assert "03-scaled-attention is worth up to 25 points here, but 100 in grades.csv." in why


def test_the_total_counts_required_problems_and_missing_ones_as_zero(
    tmp_path: Path, saved: Save
) -> None:
    optional = problem("06-block", 15, 20, part="two", optional=True)
    required = problem("01-softmax", 5, 10), problem(ID, 20, 25)
    both = result("a", *required, optional, identity="canvas:1001")
    file = canvas_file(tmp_path, CLASS[:2], possible="35")
    reports = saved(both, result_for(CLASS[1], 20))
    messages = export_lines("canvas", file, reports, "--total", "--column", "Week 3")
    assert "Not graded in 01-softmax, which counts 0: Zoë Müller (canvas:1002)." in messages
    filled = filled_in(file)
    assert (filled["1001"], filled["1002"]) == ("25", "20")


def test_a_file_with_decimal_commas_keeps_them(tmp_path: Path, saved: Save) -> None:
    file = canvas_file(tmp_path, CLASS[:2], possible="25,00", separator=";")
    export_lines("canvas", file, saved(result_for(CLASS[0], 12.5)), "--column", "Week 3")
    filled = (tmp_path / "grades-filled.csv").read_bytes()
    assert marks_in(filled, "ID", "Week 3 (123456)", ";")["1001"] == "12,5"
    file.write_bytes(moodle_worksheet(CLASS[:2], most="25,00"))
    export_lines("moodle", file, saved(result_for(CLASS[0], 12.5, "moodle")))
    assert b',"12,5","25,00",' in (tmp_path / "grades-filled.csv").read_bytes()


def test_repeated_rows_are_reported_once(tmp_path: Path, saved: Save) -> None:
    file = canvas_file(tmp_path, [CLASS[0], CLASS[0], CLASS[1]])
    reports = saved(*(result_for(s, 20) for s in CLASS[:2]))
    messages = export_lines("canvas", file, reports, "--column", "Week 3")
    assert messages[0].startswith("1 mark filled in")
    assert len([text for text in messages if "so these lines were not changed." in text]) == 1


BY_NAME = ("--id-column", "Full name", "--column", "Grade")
"""Options for a worksheet of another assignment, in which students have different numbers."""


def test_numbers_of_a_different_week_are_unknown_but_names_match(
    tmp_path: Path, saved: Save
) -> None:
    students = [Student(s.id + 5000, s.first, s.last) for s in CLASS]
    file = moodle_file(tmp_path, students)
    reports = saved(*(result_for(s, s.id - 1000, "moodle") for s in CLASS))
    assert "Nothing was filled in" in refusal("moodle", file, reports, "--problem", "03")
    messages = export_lines("csv", file, reports, *BY_NAME)
    assert messages[0] == "15 marks filled in under 'Grade'."
    assert (
        "Grades.csv has 'Kim Lee' in lines 30 and 32, so these lines were not changed." in messages
    )
    assert not any("not in Grades.csv" in text for text in messages)
    assert filled_in(file)["Participant 6004"] == "4"


def test_a_name_matches_without_punctuation_but_not_without_vowels(
    tmp_path: Path, saved: Save
) -> None:
    """Moodle omits punctuation in the folder names of a download."""
    names = [("Bo", "O'Neil"), ("Bo", "Neil"), ("राम", "वर्मा"), ("ராமன்", "")]
    file = moodle_file(tmp_path, [Student(n, *name) for n, name in enumerate(names)])
    found = [
        result(f"r{n}", full_name=name) for n, name in enumerate(("Bo ONeil", "रमा वर्मा", "ராமன்"))
    ]
    export_lines("csv", file, saved(*found), *BY_NAME)
    assert [*filled_in(file).values()] == ["20", "", "", "20"]


def test_joined_numbers_match_in_every_worksheet(tmp_path: Path, saved: Save) -> None:
    ada, bob = Student(93, "Ada", "Lovelace"), Student(94, "Bob", "Ross")
    file = moodle_file(tmp_path, [ada, bob])
    joined = result("ada", identity="moodle:7", full_name="Ada Lovelace")
    joined.members = ("Participant 203",)
    other = result("eve", identity="moodle:8", full_name="Eve")
    reports = saved(joined, other)
    names = "found,means\nmoodle:93,moodle:7\nmoodle:203,moodle:7\nmoodle:94,Eve\nsoftmx.py,01\n"
    write(tmp_path / "book", {"names.csv": names})
    messages = export_lines("moodle", file, reports)
    filled = filled_in(file)
    assert filled == {"Participant 93": "20", "Participant 94": ""}
    assert not any("Ada" in text for text in messages)
    assert any(text.startswith("Not filled in for Bob Ross (94): in the") for text in messages)


@pytest.mark.parametrize("full_name", ["Ada Lovelace", "Grace", "Kim Lee"])
def test_the_line_that_joins_new_numbers_is_printed(
    full_name: str, tmp_path: Path, saved: Save
) -> None:
    """No line is printed if two students have the name."""
    kims = [Student(94, "Kim", "Lee"), Student(95, "Kim", "Lee")]
    file = moodle_file(tmp_path, [Student(93, "Ada", "Lovelace"), *kims])
    others = [result(f"kim{n}", identity=f"moodle:{n}", full_name="Kim Lee") for n in (8, 9)]
    reports = saved(result("ada", identity="moodle:7", full_name=full_name), *others)
    message = refusal("moodle", file, reports, "--problem", "03")
    assert "In the file: Ada Lovelace (93), Kim Lee (94)" in message
    line = "add a line to names.csv: moodle:93,moodle:7"
    assert message.endswith(line) is (full_name == "Ada Lovelace")
    assert ("add a line" in message) is (full_name == "Ada Lovelace")


def of_moodle_group(number: int) -> SubmissionResult:
    """Return the result of a group that has the same number as a participant."""
    name, members = f"Group {number}", (f"Participant {number}",)
    return result(f"g-{number}", identity=f"moodle:{number}", full_name=name, members=members)


NO_PARTICIPANTS = "If these are the numbers of groups"


def test_a_worksheet_without_names_is_filled_in_by_numbers(tmp_path: Path, saved: Save) -> None:
    rows = [[c for n, c in enumerate(row) if n not in (1, 2)] for row in cells(moodle_worksheet())]
    file = tmp_path / "Grades.csv"
    file.write_text(as_csv(rows))  # type: ignore[arg-type]
    blind = result("p", identity="moodle:1004", full_name="Participant 1004")
    reports = saved(blind, of_moodle_group(1005))
    messages = export_lines("moodle", file, reports, "--feedback", str(tmp_path / "f.zip"))
    filled = filled_in(file)
    assert (filled["Participant 1004"], filled["Participant 1005"]) == ("20", "")
    assert NO_PARTICIPANTS in " ".join(messages)
    with zipfile.ZipFile(tmp_path / "f.zip") as archive:
        assert archive.namelist() == ["Participant_1004_assignsubmission_file_/feedback.html"]


def test_a_group_number_is_not_taken_for_a_participant_number(tmp_path: Path, saved: Save) -> None:
    file = moodle_file(tmp_path, CLASS[:3], marks={1002: "3.00"})
    message = " ".join(
        export_lines("moodle", file, saved(of_moodle_group(1001), of_moodle_group(1002)))
    )
    assert [*filled_in(file).values()] == ["", "3.00", ""]
    assert "0 marks filled in" in message
    assert NO_PARTICIPANTS in message


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ((b"Identifier", b"ID"), "set the language to English"),
        ((b"Maximum Grade", b"Scale"), "points instead of a scale of words"),
    ],
)
def test_an_invalid_worksheet_is_refused(
    change: tuple[bytes, bytes], why: str, tmp_path: Path, saved: Save
) -> None:
    file = tmp_path / "Grades.csv"
    file.write_bytes(moodle_worksheet().replace(*change))
    reports = saved(result_for(CLASS[0], 20, "moodle"))
    assert why in refusal("moodle", file, reports, "--problem", "03")


def test_the_platforms_file_is_overwritten_only_on_request(tmp_path: Path, saved: Save) -> None:
    file = moodle_file(tmp_path)
    export_lines("moodle", file, saved(result_for(CLASS[0], 20, "moodle")), "--out", str(file))
    assert marks_in(file.read_bytes(), "Identifier", "Grade")["Participant 1001"] == "20"


def test_corrections_and_lateness_are_in_the_marks(tmp_path: Path, saved: Save) -> None:
    stale = result_for(CLASS[0], 20)
    stale.problems[0].adjustments = [Adjustment(-20, "An old one")]
    reports = saved(stale)
    lines = "submission,problem,test,mark,reason\ncanvas:1001,03,,23,why\n"
    write(tmp_path / "book", {"corrections.csv": lines})
    file = canvas_file(tmp_path, CLASS[:1])
    export_lines("canvas", file, reports, "--column", "Week 3")
    assert filled_in(file)["1001"] == "23"
    write(tmp_path / "book", {"corrections.csv": f"{lines}nobody,03,,1,why\n"})
    assert "# nobody,03,,1,why" in refusal("canvas", file, reports, "--problem", "03")


# Other files


def test_a_roster_of_gradescope_is_filled_in(tmp_path: Path, saved: Save) -> None:
    file = tmp_path / "roster.csv"
    file.write_text("Name,SID,Email\nAda,001,Ada@x.edu\nBob,002,bob@x.edu\nEve,,eve@x.edu\n")
    ada, both = result("ada", identity="gradescope:ada@x.edu"), result("two")
    both.identity, both.members = "gradescope:002", ("bob@x.edu", "eve@x.edu")
    export_lines("gradescope", file, saved(ada, both), "--new-column", "Week 3")
    assert (tmp_path / "roster-filled.csv").read_text() == (
        "Name,SID,Email,Week 3\nAda,001,Ada@x.edu,20\nBob,002,bob@x.edu,20\nEve,,eve@x.edu,20\n"
    )


@pytest.mark.parametrize(
    ("platform", "options"),
    [("gradescope", ["--column", "Mark"]), ("csv", ["--id-column", "SID", "--column", "Mark"])],
)
def test_a_student_id_is_not_taken_for_a_canvas_id(
    platform: str, options: list[str], tmp_path: Path, saved: Save
) -> None:
    file = tmp_path / "list.csv"
    file.write_text("Email,SID,Mark\nbob@x.edu,1001,\n")
    reports = saved(result_for(CLASS[0], 20))
    assert "Nothing was filled in" in refusal(platform, file, reports, "--problem", "03", *options)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_list_is_read_in_each_encoding_of_excel(
    encoding: str, tmp_path: Path, saved: Save
) -> None:
    file = tmp_path / "list.csv"
    file.write_bytes("Nr;Wer;Mark\r\n1;JOSÉ Núñez;\r\n2;ada;\r\n".encode(encoding))
    reports = saved(result("jose", full_name="José Núñez", identity="canvas:7"), result("ada"))
    assert "Name it with --id-column" in refusal("csv", file, reports, "--problem", "03")
    export_lines("csv", file, reports, "--id-column", "Wer", "--column", "Mark")
    filled = (tmp_path / "list-filled.csv").read_bytes()
    assert filled == "Nr;Wer;Mark\r\n1;JOSÉ Núñez;20\r\n2;ada;20\r\n".encode(encoding)


def of_group(*people: str, id: str = ID, points: float = 20, most: float = 25) -> SubmissionResult:
    accounts = [f"{name}@x.edu" for name in people]
    found = result("-".join(people), problem(id, points, most))
    found.identity, found.members = f"gradescope:{'+'.join(accounts)}", tuple(accounts)
    return found


@pytest.mark.parametrize("book", ["book", "other"])
def test_a_member_of_several_groups_has_marks_but_no_total(
    book: str, tmp_path: Path, saved: Save
) -> None:
    file = tmp_path / "roster.csv"
    file.write_text("Name,SID,Email\nAda,001,ada@x.edu\nBob,002,bob@x.edu\nEve,003,eve@x.edu\n")
    write(tmp_path / book, {"roster.csv": file.read_bytes()})
    first = {"id": "01-softmax", "most": 10}
    alone, others = of_group("ada", points=5, **first), of_group("bob", "eve", points=7, **first)
    reports = saved(alone, others, of_group("ada", "bob"))
    for option, marks in (
        ("--problem=03", ["20", "20", ""]),
        ("--problem=01", ["5", "7", "7"]),
        ("--total", ["", "", "7"]),
    ):
        messages = export_lines("gradescope", file, reports, "--new-column", "Mark", option)
        rows = cells((tmp_path / "roster-filled.csv").read_bytes())
        assert [row[3] for row in rows[1:]] == marks
        refusal = [text for text in messages if text.startswith("Not filled in for ")]
        assert len(refusal) == (2 if option == "--total" else 0)


def test_marks_of_several_groups_for_one_problem_are_not_exported(
    tmp_path: Path, saved: Save
) -> None:
    file = tmp_path / "roster.csv"
    file.write_text("Name,SID,Email\nAda,001,ada@x.edu\nBob,002,bob@x.edu\n")
    reports = saved(of_group("ada", points=5), of_group("ada", "bob"))
    for option in ("--problem=03", "--total"):
        messages = export_lines("gradescope", file, reports, "--new-column", "Mark", option)
        assert any(
            text.startswith("Not filled in for Ada (ada@x.edu): it may be") for text in messages
        )
        rows = cells((tmp_path / "roster-filled.csv").read_bytes())
        assert [row[3] for row in rows[1:]] == ["", "20"]


@pytest.mark.parametrize("column", ["Student", "SIS Login ID", "Email"])
def test_any_csv_is_filled_in_by_columns_of_the_roster(
    column: str, tmp_path: Path, saved: Save
) -> None:
    roster = "Student,ID,SIS Login ID,Section,Email\n"
    roster += '"Lovelace, Ada",1,adal,A,Ada@x.edu\n"Noether, Emmy",2,emmy,A,emmy@x.edu\n'
    write(tmp_path / "book", {"roster.csv": roster})
    file = write(tmp_path, {"list.csv": roster}) / "list.csv"
    people = result("noetheremmy", identity="canvas:2"), result("adalovelace", identity="canvas:1")
    export_lines("csv", file, saved(*people), "--id-column", column, "--new-column", "Week 3")
    filled = marks_in((tmp_path / "list-filled.csv").read_bytes(), "ID", "Week 3")
    assert filled == {"1": "20", "2": "20"}


def test_a_name_shared_by_two_students_gets_no_mark(tmp_path: Path, saved: Save) -> None:
    roster = "Student,ID\nAda Lovelace,1\nAda Lovelace,2\nEmmy Noether,3\n"
    write(tmp_path / "book", {"roster.csv": roster})
    file = tmp_path / "list.csv"
    file.write_text("Student\nAda Lovelace\nEmmy Noether\n")
    people = [
        result("ada", identity="canvas:1", full_name="Ada Lovelace"),
        result("emmy", identity="canvas:3", full_name="Emmy Noether"),
    ]
    options = "--id-column", "Student", "--new-column", "Week 3"
    messages = export_lines("csv", file, saved(*people), *options)
    filled = marks_in((tmp_path / "list-filled.csv").read_bytes(), "Student", "Week 3")
    assert filled == {"Ada Lovelace": "", "Emmy Noether": "20"}
    assert any("Ada Lovelace (canvas:1)" in line for line in messages)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["canvas"], "Choose the marks"),
        (["canvas", "--problem", "03", "--total"], "Choose the marks"),
        (["blackboard", "--problem", "03"], "is an unknown platform"),
        (["canvas", "--problem", "05"], "No student in these reports has been graded in 05"),
        (["canvas", "--problem", "03", "--new-column", "Final Score"], "use --column"),
        (["canvas", "--problem", "03", "--feedback", "f.zip"], "add --download"),
        (["csv", "--problem", "03", "--feedback", "f.zip"], "canvas and moodle"),
        (
            ["moodle", "--problem", "03", "--feedback", "f", "--out", "f"],
            "can't both be written to f",
        ),
    ],
)
def test_invalid_requests_are_refused(
    options: list[str], why: str, tmp_path: Path, saved: Save
) -> None:
    file = tmp_path / "grades.csv"
    file.write_bytes(canvas_gradebook().replace(b"Essay; one (55)", b"Essay"))
    platform, *rest = options
    assert why in refusal(platform, file, saved(result_for(CLASS[0], 20)), *rest)


def test_without_results_nothing_is_filled_in(tmp_path: Path) -> None:
    file = canvas_file(tmp_path)
    why = refusal("canvas", file, tmp_path / "nowhere", "--problem", "03")
    assert "There are no results in" in why


def test_a_number_without_leading_zeros_is_only_suggested(tmp_path: Path, saved: Save) -> None:
    roster = "name,id,sis user id\nAda,canvas:1,0001234\nBo,canvas:2,0000077\n"
    write(tmp_path / "book", {"roster.csv": roster})
    reports = saved(*(result(f"s{n}", identity=f"canvas:{n}") for n in (1, 2)))
    file = tmp_path / "list.csv"
    file.write_text("Id,Mark\n1234,\n0000077,\n1.23457E+12,\n")
    message = " ".join(export_lines("csv", file, reports, "--id-column", "Id", "--column", "Mark"))
    assert "Did you mean 0001234 by 1234? list.csv lacks leading zeros. Format" in message


# Feedback


def test_feedback_for_moodle_is_in_folders_with_moodles_names(tmp_path: Path, saved: Save) -> None:
    file = moodle_file(tmp_path)
    reports = saved(*(result_for(s, 20, "moodle") for s in CLASS))
    (reports / "feedback/s-1002.html").unlink()
    messages = export_lines("moodle", file, reports, "--feedback", str(tmp_path / "feedback.zip"))
    assert "No feedback for Zoë Müller (1002): s-1002.html does not exist." in messages
    with zipfile.ZipFile(tmp_path / "feedback.zip") as archive:
        assert len(archive.namelist()) == len(CLASS) - 1
        for name in archive.namelist():
            # Moodle reads the part after the first underscore as the number.
            who, id, kind, plugin, rest = name.partition("/")[0].split("_", 4)
            assert (kind, plugin, rest) == ("assignsubmission", "file", "")
            assert archive.read(name).decode() == f"<p>Feedback for s-{id}</p>"
            assert who
        assert "Anna Maria de la Cruz_1014_assignsubmission_file_/feedback.html" in (
            archive.namelist()
        )


@pytest.mark.parametrize("option", ["--feedback", "--out"])
def test_marks_and_feedback_are_both_written_or_neither(
    option: str, tmp_path: Path, saved: Save
) -> None:
    file = moodle_file(tmp_path)
    reports = saved(*(result_for(s, 20, "moodle") for s in CLASS))
    places = {"--out": tmp_path / "marks.csv", "--feedback": tmp_path / "feedback.zip"}
    places[option] = file / "folder" / places[option].name
    options = [word for pair in places.items() for word in map(str, pair)]
    why = refusal("moodle", file, reports, "--problem", "03", *options)
    assert places[option].name in why
    assert "is not a folder" in why


def test_feedback_for_canvas_has_the_names_of_the_download(tmp_path: Path, saved: Save) -> None:
    file = canvas_file(tmp_path, CLASS[:4])
    reports = saved(*(result_for(s, 20) for s in CLASS[:4]))
    names = [
        "lovelaceada_1001_501_problem.py",
        "lovelaceada_LATE_1001_520_problem-1.py",
        "lovelaceada_1001_530_notes.pdf",
        "müllerzoë_1002_502_problem.ipynb",
        "_1003_503_hw_2.zip",
        "_1004_text.html",
    ]
    with zipfile.ZipFile(tmp_path / "submissions.zip", "w") as download:
        for name in names:
            download.writestr(name, "x")
    options = ["--feedback", str(tmp_path / "f.zip"), "--download", str(download.filename)]
    messages = export_lines("canvas", file, reports, "--column", "Week 3", *options)
    lacks = "submissions.zip has no .py, .txt, .md or .zip file of this student."
    assert f"No feedback for Müller, Zoë (1002): {lacks}" in messages
    assert f"No feedback for 陳, 小文 (1004): {lacks}" in messages
    with zipfile.ZipFile(tmp_path / "f.zip") as archive:
        late = "lovelaceada_LATE_1001_520_problem-1.py"
        assert archive.namelist() == ["_1003_503_hw_2.zip", late]
        assert archive.read(late) == b"Feedback for s-1001\n"
        with zipfile.ZipFile(io.BytesIO(archive.read("_1003_503_hw_2.zip"))) as inner:
            assert inner.read("feedback.html") == b"<p>Feedback for s-1003</p>"
