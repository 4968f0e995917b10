"""A term: five weeks of marks into one gradebook, with late ones, corrections and latecomers."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.cli import app
from grader.course import own_course
from grader.result import ProblemResult, SubmissionResult
from tests.grader.gradebook.built import problem, result
from tests.grader.gradebook.platform_files import CLASS, Student, as_csv

WEEKS = [problem.id for problem in own_course().of_part("one")]
STUDENTS = [Student(s.id + 100 * n, s.first, s.last) for n in range(3) for s in CLASS][:40]
WORTH = {WEEKS[0]: 10, WEEKS[1]: 15}


def gradebook() -> bytes:
    columns = [f"{id} ({70 + n})" for n, id in enumerate(WEEKS)]
    header = ["Student", "ID", "SIS Login ID", "Section", *columns, "Final Score"]
    worth = [WORTH.get(id, 25) for id in WEEKS]
    rows: list[list[object]] = [header, ["    Points Possible", "", "", "", *worth, "(read only)"]]
    rows += [[s.sortable, s.id, f"u{s.id}", "A", *[""] * 5, "0.00"] for s in STUDENTS]
    return as_csv(rows).encode()


def of(student: Student, found: dict[str, ProblemResult]) -> SubmissionResult:
    who = {"identity": f"canvas:{student.id}", "full_name": student.full_name}
    return result(f"s{student.id}", *found.values(), **who)


def term(saved: Callable[..., Path], file: Path, rng: random.Random, weeks: list[str]) -> bytes:
    """Play a term through, with the weeks in some order; return the gradebook at its end."""
    marks = random.Random(1)
    points = {(s.id, id): marks.randint(0, WORTH.get(id, 25)) for s in STUDENTS for id in WEEKS}
    file.write_bytes(gradebook())
    handed_in: dict[Student, dict[str, ProblemResult]] = {student: {} for student in STUDENTS}
    for id in weeks:
        for student in rng.sample(STUDENTS, len(STUDENTS)):
            late = (student.id + int(id[:2])) % 5 == 0
            found = problem(id, points[student.id, id], WORTH.get(id, 25), late=late)
            handed_in[student][id] = found
        reports = saved(*(of(student, found) for student, found in handed_in.items()))
        (reports / "late.toml").write_text("flagged = 0.2\n")
        (reports / "corrections.csv").write_text(
            "submission,problem,test,mark,reason\ncanvas:1003,03,,25,By hand\n"
        )
        command = ["export", "canvas", str(file), "--from", str(reports), "--problem", id[:2]]
        run = CliRunner().invoke(app, [*command, "--column", id, "--out", str(file)])
        assert run.exit_code == 0, run.output
        assert "without a mark" not in run.output
        assert "with a mark, but not" not in run.output.lower()
    return file.read_bytes()


@pytest.mark.slow
def test_every_mark_is_at_the_right_id_in_whatever_order(
    tmp_path: Path, saved: Callable[..., Path]
) -> None:
    book = term(saved, tmp_path / "a.csv", random.Random(2), WEEKS)
    assert book == term(saved, tmp_path / "b.csv", random.Random(3), [*reversed(WEEKS), *WEEKS])
    marks = random.Random(1)
    header, _, *rows = csv.reader(io.StringIO(book.decode(), newline=""))
    for student, row in zip(STUDENTS, rows, strict=True):
        assert row[:4] == [student.sortable, str(student.id), f"u{student.id}", "A"]
        for id, mark in zip(WEEKS, row[4:9], strict=True):
            earned = marks.randint(0, WORTH.get(id, 25))
            late = (student.id + int(id[:2])) % 5 == 0
            expected = round(earned * 0.8, 2) if late else earned
            if (student.id, id[:2]) == (1003, "03"):
                expected = 25
            assert float(mark) == expected
    assert header[-1] == "Final Score"
