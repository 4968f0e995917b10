"""In a simulated term on three platforms, all students get correct marks in each week."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from grader.cli_instructor import app
from tests.conftest import add_problem
from tests.grader.intake.uploads import write

pytestmark = pytest.mark.slow

MOODLE = "{}_assignsubmission_file_/problem.py"
PARTICIPANTS = (
    '"First name","Last name","ID number","Email address",Groups\n'
    'Ada,Lovelace,0001,a@x,"Group One"\nKurt,Gödel,0002,k@x,"Group One"\n'
    "Emmy,Noether,0003,e@x,\nKim,Lee,0004,l1@x,\nKim,Lee,0005,l2@x,\n"
)
LATE = (
    'per = "day"\nshare = 0.1\nflagged = 0.5\nzone = "America/New_York"\n'
    "[deadlines]\n03 = 2026-10-31T20:00:00\n[extensions]\n"
    '"Ada Lovelace" = { 03 = "1 day" }\n"l1@x" = { 03 = "24 hours" }\n'
)
"""The late policy. Clocks are turned back on Sunday, so one day lasts 25 hours."""

SUNDAY_EVENING = "2026-11-01 19:30:00 -05:00"


class Term:
    """Grades downloads, edits the gradebook folder and exports marks, as an instructor does."""

    def __init__(self, school: Any, folder: Path) -> None:
        self.school, self.folder, self.book = school, folder, dict[str, str]()
        for id in ("02-doubling", "03-doubling"):
            add_problem(school.course.root, id)

    def grade(self, problem: str, files: dict[str, str]) -> str:
        week = self.folder / f"week{len([*self.folder.iterdir()])}"
        return str(self.school.command("--problem", problem, path=write(week, files)))

    def add(self, name: str, text: str) -> None:
        self.book[name] = self.book.get(name, "") + text
        self.school.write_book(name, self.book[name])

    def marks(self, column: str) -> dict[str, str]:
        return {who: row[column] for who, row in self.school.rows().items() if row[column]}

    def export(self, platform: str, sheet: str, problem: str, *options: str) -> list[str]:
        """Export marks, and return the last column of the exported file."""
        file = self.folder / f"{platform}.csv"
        file.write_text(sheet, encoding="utf-8")
        words = ["export", platform, str(file), "--reports", str(self.school.out), *options]
        done = CliRunner().invoke(app, [*words, "--problem", problem, "--out", str(file)])
        assert done.exit_code == 0, done.output
        with file.open(encoding="utf-8", newline="") as filled:
            return [row[-1] for row in csv.reader(filled)][1:]


def gradescope(people: dict[str, tuple[str, str]], time: str) -> dict[str, str]:
    """Return the files of a Gradescope export.

    `people` maps the text of each file to the name and the address of the student.
    """
    lines, files = [], {}
    for number, (source, (name, email)) in enumerate(people.items()):
        lines.append(f"submission_{number}:\n  :submitters:\n  - :name: {name}\n")
        lines.append(f"    :email: {email}\n  :created_at: {time}\n")
        files[f"submission_{number}/problem.py"] = source.rstrip()
    return {"submission_metadata.yml": "".join(lines), **files}


def test_a_term_ends_with_the_right_marks(school: Any, tmp_path: Path) -> None:
    term, right, wrong = Term(school, tmp_path), school.right, school.wrong

    # Canvas: resubmissions in one download, and two students with the same name
    first = {
        "lovelaceada_1001_11_problem.py": right,
        "godelkurt_LATE_1002_12_problem.py": right,
        "noetheremmy_1003_13_problem.py": wrong,
        "noetheremmy_1003_14_problem-1.py": right,
        "leekim_1004_15_problem.py": right,
        "leekim_1005_16_problem.py": wrong,
    }
    term.add("late.toml", LATE)
    term.grade("01", first)
    marks = {"1001": "4", "1002": "2", "1003": "4", "1004": "4", "1005": "0"}
    assert term.marks("01-doubling") == {f"canvas:{id}": mark for id, mark in marks.items()}

    # A correction by a readable name, and one by a name that two students have
    kims = {who: row["submission"] for who, row in school.rows().items() if who[-1] in "45"}
    head = "submission,problem,test,mark,reason\n"
    school.write_book("corrections.csv", f"{head}leekim,01,,3,A slip\n")
    assert "canvas:1004,01,,3,A slip canvas:1005,01,,3" in school.command(status=2)
    term.add("corrections.csv", f"{head}{kims['canvas:1005']},01,,3,A slip\n")

    # A lower mark than before, and an account with another name
    second = {"lovelaceada_1001_21_problem.py": wrong, "goedelkurt_LATE_1002_22_problem.py": right}
    said = term.grade("01", second)
    assert "canvas:1001,01,,4,The earlier file counts." in said
    term.add("corrections.csv", "canvas:1001,01,,4,The earlier file counts.\n")
    term.grade("01", second)
    marks["1005"] = "3"
    assert term.marks("01-doubling") == {f"canvas:{id}": mark for id, mark in marks.items()}

    # Moodle: a group with the number of an unrelated participant
    term.add("roster.csv", PARTICIPANTS)
    uploads = {"Group One_305": right, "Emmy Noether_303": wrong}
    term.grade("02", {MOODLE.format(name): source for name, source in uploads.items()})
    sheet = "Identifier,Full name,Email address,Maximum Grade,Grade\n" + "".join(
        f"Participant {number},{name},{email},4,\n"
        for number, name, email in (
            *((301, "Ada Lovelace", "a@x"), (302, "Kurt Gödel", "k@x")),
            *((303, "Emmy Noether", "e@x"), (305, "Kim Lee", "l2@x")),
        )
    )
    assert term.export("moodle", sheet, "02") == ["4", "4", "0", ""]

    # Gradescope: an extension of a day over the night in which clocks are turned back
    people = {right: ("Ada Lovelace", "a@x"), f"{right} ": ("Kurt Gödel", "k@x")}
    people[f"{right}  "] = ("Kim Lee", "l1@x")
    term.add("names.csv", "found,means\ncanvas:1001,gradescope:a@x\n")
    term.grade("03", gradescope(people, SUNDAY_EVENING))
    sheet = "Email,03\na@x,\nk@x,\nl1@x,\nl2@x,\n"
    options = ("--column", "03")
    assert term.export("gradescope", sheet, "03", *options) == ["4", "3.6", "3.6", ""]

    # Two names of one student are in one row, and the export for Canvas has the marks of week 1
    row = school.rows()["gradescope:a@x"]
    assert (row["01-doubling"], row["03-doubling"]) == ("4", "4")
    sheet = "Student,ID,Section,01 (7)\n    Points Possible,,,4\n"
    sheet += "".join(f"x,{id},A,\n" for id in marks)
    assert term.export("canvas", sheet, "01")[1:] == [*marks.values()]
