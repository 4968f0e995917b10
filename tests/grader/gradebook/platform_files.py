"""The files of several learning platforms for a class with names in many scripts."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass


@dataclass(frozen=True)
class Student:
    """A student of the class.

    Attributes:
        id: the student's number on the platform.
        first: the first name.
        last: the last name.
    """

    id: int
    first: str
    last: str

    @property
    def full_name(self) -> str:
        return f"{self.first} {self.last}".strip()

    @property
    def sortable(self) -> str:
        return f"{self.last}, {self.first}" if self.last else self.first


CLASS = [
    Student(1001, "Ada", "Lovelace"),
    Student(1002, "Zoë", "Müller"),
    Student(1003, "小明", "陳"),
    Student(1004, "小文", "陳"),
    Student(1005, "Ольга", "Иванова"),
    Student(1006, "أحمد", "حسن"),
    Student(1007, "Δημήτρης", "Παπαδόπουλος"),
    Student(1008, "प्रिया", "शर्मा"),
    Student(1009, "さくら", "田中"),
    Student(1010, "민준", "김"),
    Student(1011, 'Bo "the" Brave', "O'Neil"),
    Student(1012, "Cher", ""),
    Student(1013, "=HYPERLINK(1)", "Formula"),
    Student(1014, "Anna_Maria", "de la Cruz"),
    Student(1015, "Kim", "Lee"),
    Student(1016, "Kim", "Lee"),
    Student(1017, "line\nbreak", "Odd"),
]


def as_csv(rows: list[list[object]], *, separator: str = ",", ending: str = "\n") -> str:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator=ending).writerows(rows)
    return text.getvalue()


def canvas_gradebook(
    students: list[Student] = CLASS,
    *,
    possible: str = "25.00",
    marks: dict[int, str] | None = None,
    separator: str = ",",
    bom: bool = True,
) -> bytes:
    """Return Canvas's gradebook with two assignments, totals, and the test student."""
    marks = marks or {}
    sections = '"Monday", and Tuesday'
    header = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Notes"]
    header += ["Essay; one (55)", "Week 3 (123456)", "Assignments Current Points"]
    header += ["Current Score (2026)", "Final Score", "Override Score"]
    rows: list[list[object]] = [header]
    rows.append([""] * 7 + ["Manual Posting"] + [""] * 4)
    read_only = ["(read only)"] * 3
    rows.append(["    Points Possible", *[""] * 5, "10.00", possible, *read_only, ""])
    for n, student in enumerate(students):
        name = f'="{student.sortable}"' if student.sortable[:1] == "=" else student.sortable
        who = [name, student.id, f"00{n}", f"u{student.id}@example.edu", sections, "+1"]
        rows.append([*who, "7.50", marks.get(student.id, ""), "7.5", "75.00", "75.00", ""])
    who = ["Student, Test", 9999, "", "f00d", sections, ""]
    rows.append([*who, "", "", "", "", "", ""])
    text = as_csv(rows, separator=separator)
    return text.encode("utf-8-sig" if bom else "utf-8")


def moodle_worksheet(
    students: list[Student] = CLASS,
    *,
    most: str = "25.00",
    marks: dict[int, str] | None = None,
    locked: tuple[int, ...] = (),
) -> bytes:
    marks = marks or {}
    header = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade"]
    header += ["Grade can be changed", "Last modified (submission)", "Last modified (grade)"]
    rows: list[list[object]] = [[*header, "Feedback comments"]]
    for student in students:
        mark = marks.get(student.id, "")
        change = "No" if student.id in locked else "Yes"
        status = "Submitted for grading - Late by 2 hours"
        when = "Monday, 2 November 2026, 11:59 PM"
        who = [f"Participant {student.id}", student.full_name, f"u{student.id}@example.edu"]
        rows.append([*who, status, mark, most, change, when, "-", '<p>Well, "done"</p>\n'])
    return as_csv(rows, ending="\r\n").encode()
