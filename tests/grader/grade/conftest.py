"""Fixtures for grading a class quickly, without running the submitted files."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.course import Course
from grader.grade import class_run
from grader.grade.class_run import ClassRun, grade_class
from grader.grade.outcome import internal_result
from grader.grade.provenance import common_provenance, provenance
from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.intake.submissions import find_submissions
from grader.result import Policy, ProblemResult, Status, SubmissionResult
from tests.conftest import add_problem
from tests.grader.intake.uploads import write
from tests.results import doubles

OTHER = "02-doubling"


class School:
    """A class of students, its course and its folder of reports. Commands run in this process."""

    right = "def double(x): return x + x"
    wrong = "def double(x): return 3 * x"

    def __init__(self, root: Path, course: Course) -> None:
        self.course = course
        self.folder, self.out = root / "class", root / "out"
        self.graded: list[tuple[str, list[str]]] = []
        for name, source in {"ada": self.right, "bob": self.wrong}.items():
            self.hand_in(name, source)

    def hand_in(self, name: str, source: str, problem: str = "01-doubling") -> None:
        write(self.folder, {f"{name}/{problem}/problem.py": source})

    def write_book(self, name: str, text: str) -> None:
        write(self.out.parent / "book", {name: text})

    def submissions(self) -> list[Submission]:
        return find_submissions(self.folder, self.course)

    def grade(self, folder: Path | None = None, only: str = "", **options: object) -> ClassRun:
        self.graded.clear()
        settings = Settings(**options.pop("settings", {}))  # type: ignore[arg-type]
        chosen = self.course.select([only])[0] if only else None
        submissions = find_submissions(folder or self.folder, self.course, chosen)
        options = {"jobs": 1, "policy": Policy.TITLES, **options}
        return grade_class(submissions, self.course, settings, self.out, **options)  # type: ignore[arg-type]

    def command(self, *words: str, path: Path | None = None, status: int = 0) -> str:
        """Run `grader grade` on the class or on `path`, and return the output in one line."""
        self.graded.clear()
        given = str(path or self.folder)
        done = CliRunner().invoke(app, ["grade", given, "--out", str(self.out), *words])
        assert done.exit_code == status, done.output
        return " ".join(done.output.split())

    def rows(self, by: str = "identity") -> dict[str, dict[str, str]]:
        """Map each value in a column of the gradebook to its row."""
        with (self.out / "gradebook.csv").open(encoding="utf-8-sig", newline="") as file:
            return {row[by]: row for row in csv.DictReader(file)}

    def gradebook(self) -> dict[str, str]:
        """Return each student's total."""
        return {name: row["total"] for name, row in self.rows().items()}

    def names(self) -> list[str]:
        return [name for name, _ in self.graded]


@pytest.fixture
def school(tmp_path: Path, small_course: Course, monkeypatch: pytest.MonkeyPatch) -> School:
    """Create a class of two students. Grading only compares the text of their files."""
    return school_of(small_course, tmp_path, monkeypatch)


@pytest.fixture
def term(school: School) -> School:
    """Create a course of two problems, and a class without submissions."""
    add_problem(school.course.root, OTHER)
    shutil.rmtree(school.folder)
    return school


@pytest.fixture
def long_school(tmp_path: Path, two_parts: Course, monkeypatch: pytest.MonkeyPatch) -> School:
    """Create a class of two students in a course of two parts."""
    return school_of(two_parts, tmp_path, monkeypatch)


def school_of(course: Course, folder: Path, monkeypatch: pytest.MonkeyPatch) -> School:
    made = School(folder, course)

    def grade_all(submissions, course, settings, jobs, on_result):  # type: ignore[no-untyped-def]
        for submission in submissions:
            made.graded.append((submission.name, list(submission.files)))
            on_result(fake_result(submission, course, settings))

    monkeypatch.setattr(class_run, "grade_all", grade_all)
    monkeypatch.setattr("grader.cli.own_course", lambda: course)
    return made


def fake_result(submission, course, settings):  # type: ignore[no-untyped-def]
    """Return a result with 4 points for each correct file."""
    result = SubmissionResult(submission.name, 0, "sandbox", "", [])
    for id, file in submission.files.items():
        status = Status.PASSED if file.source == School.right.encode() else Status.FAILED
        if b"NotImplementedError" in (file.source or b""):
            status = Status.NOT_IMPLEMENTED
        if file.source == b"fault":
            return internal_result(submission.name, "a fault")
        found = ProblemResult(id, file.sha256, [doubles(status)])
        found.provenance = provenance(file, common_provenance(course, settings)[id])
        result.problems.append(found)
    return result
