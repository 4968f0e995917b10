"""A command rejects an invalid number, and the message names the option or key."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from grader.cli import app
from grader.course import COURSE_VARIABLE, MANIFEST, Course
from tests.grader.grade.conftest import School

MANY = "9" * 400
THOUSANDS = "9" * 5000

NO_POINTS = ["nan", "1e999", "-0.5", MANY, THOUSANDS, "1000001", "３", "²", "4 p", "1_0", "1.2.3"]


@pytest.mark.parametrize("number", NO_POINTS)
@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("criteria.csv", "ada,01,Style,{},5,"),
        ("criteria.csv", "ada,01,Style,1,{},"),
        ("corrections.csv", "ada,01,,{},why"),
    ],
    ids=["points", "max", "mark"],
)
def test_invalid_marks_are_reported(school: School, file: str, line: str, number: str) -> None:
    columns = {
        "criteria.csv": "submission,problem,criterion,points,max,comment",
        "corrections.csv": "submission,problem,test,mark,reason",
    }
    school.write_book(file, f"{columns[file]}\n{line.format(number)}\n")
    said = school.command(status=2)
    assert f"{file}, line 2: " in said
    assert "Write a number from 0 to 1,000,000, such as 2.5" in said
    assert len(said) < 400
    assert school.graded == []


@pytest.mark.parametrize("number", ["0", "2.5", "2,5", "1000000", " 3 "])
def test_valid_numbers_are_read(school: School, number: str) -> None:
    text = f'submission,problem,criterion,points,max\nada,01,Style,0,"{number}"\n'
    school.write_book("criteria.csv", text)
    assert "criteria.csv, line" not in school.command()


DEADLINE = "[deadlines]\n01 = 2026-11-02T23:59:00+01:00\n"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        *[(f"share = {n}\n{DEADLINE}", "share") for n in ("nan", "-0.1", "1.1", MANY)],
        *[(f"share = 0.1\nfloor = {n}\n{DEADLINE}", "floor") for n in ("nan", "2", "1e999")],
        ("flagged = -inf\n", "flagged"),
        (f"flagged = {THOUSANDS}\n", "digits"),
        (f'share = 0.1\ngrace = "{MANY} minutes"\n{DEADLINE}', "grace"),
        (f'share = 0.1\ngrace = "-5 minutes"\n{DEADLINE}', "grace"),
        ("share = 0.1\n[deadlines]\n01 = 9999-12-31T23:59:00-12:00\n", "deadline"),
        (f'share = 0.1\n{DEADLINE}[extensions]\nada = "{MANY} days"\n', "extension"),
    ],
)
def test_invalid_numbers_in_late_toml_are_reported(school: School, text: str, key: str) -> None:
    school.write_book("late.toml", text)
    said = school.command(status=2)
    assert "toml is invalid: " in said
    assert key in said
    assert len(said) < 500
    assert school.graded == []


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        *[(f"points = {n}", "points") for n in ("nan", "-4", "0", MANY, "1e999", "true")],
        (f"points = {THOUSANDS}", "digits"),
        *[(f"minutes = {n}", "minutes") for n in ("[-5, 5]", "[9, 5]", f"[5, {MANY}]")],
    ],
)
def test_invalid_manifest_numbers_are_reported(small_course: Course, entry: str, key: str) -> None:
    manifest = small_course.root / MANIFEST
    start = f"{entry.partition(' ')[0]} = "
    lines = manifest.read_text().splitlines()
    manifest.write_text("\n".join(entry if line.startswith(start) else line for line in lines))
    said = error_output(small_course, "check", status=3)
    assert "course.toml" in "".join(said.split())
    assert key in said
    assert len(said) < 500


@pytest.mark.parametrize(
    "words",
    [
        *[f"--timeout={n}" for n in ("nan", "-1", "1e999", MANY)],
        *[f"--memory={n}" for n in ("-1", THOUSANDS)],
        *[f"--jobs={n}" for n in ("0", THOUSANDS)],
        f"--seed={THOUSANDS}",
        *[f"--problem={n}" for n in ("²", THOUSANDS, "-1")],
    ],
)
def test_invalid_numbers_of_options_are_reported(school: School, words: str) -> None:
    assert words.partition("=")[0] in school.command(words, status=2) or "problem" in words


@pytest.mark.parametrize("number", ["²", THOUSANDS])
@pytest.mark.parametrize("command", ["check", "hint", "reset"])
def test_a_bad_problem_number_is_reported(small_course: Course, command: str, number: str) -> None:
    assert "problem" in error_output(small_course, command, number)


def error_output(course: Course, *words: str, status: int = 2) -> str:
    """Run a command that fails, and return its output in one line."""
    done = CliRunner().invoke(app, words, env={COURSE_VARIABLE: str(course.root)})
    assert done.exit_code == status, (done.output, done.exception)
    return " ".join(done.output.split())
