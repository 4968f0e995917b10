"""A term with killed runs, corrections and repeated submissions ends with the same gradebook."""

from __future__ import annotations

import csv
import io
import os
import random
import re
import shutil
import signal
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.course import own_course
from grader.grade import class_run
from tests.grader.grade.term_run import made_up, run_week
from tests.grader.gradebook.platform_files import CLASS, Student, as_csv
from tests.warm import WarmPython

pytestmark = pytest.mark.slow

ROOT = own_course().root
WEEKS = [problem.id[:2] for problem in own_course().of_part("one")]
STUDENTS = [Student(s.id + 100 * n, s.first, s.last) for n in range(3) for s in CLASS][:20]
CORRECTED, REGRADED = 1004, 1005
"""Canvas's numbers of two students with names without ASCII letters."""

SEED = random.SystemRandom().randrange(10**6)


class Term:
    """Twenty students, five problems, and the submissions of each week."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.points: dict[tuple[int, str], int] = {}
        self.late: set[tuple[int, str]] = set()
        self.flagged: set[tuple[int, str]] = set()
        self.attachment = 1

    def hand_in(self, problem: str, students: list[Student], late: float) -> bytes:
        """Let students submit a problem, perhaps again; return Canvas's download.

        A late file with the same bytes as an earlier one is in time, even if Canvas flags it.
        """
        for student in students:
            key = student.id, problem
            before = self.points.get(key)
            self.points[key] = self.rng.randint(0, 10)
            if self.rng.random() < late:
                self.flagged.add(key)
                if before != self.points[key]:
                    self.late.add(key)
        return self.download(problem)

    def download(self, problem: str) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for student in STUDENTS:
                key = student.id, problem
                if key in self.points:
                    self.attachment += 1
                    name = re.sub(r"[^\w]", "", student.sortable.lower())
                    late = "_LATE" if key in self.flagged else ""
                    path = f"{name}{late}_{student.id}_{self.attachment}_problem.py"
                    archive.writestr(path, f"# {self.points[key]} points\n")
        return packed.getvalue()

    def mark(self, student: Student, problem: str) -> str:
        key = student.id, problem
        if key not in self.points:
            return ""
        if key == (CORRECTED, "03"):
            return "9.5"
        points = self.points[key] * (0.8 if key in self.late else 1)
        return f"{round(points, 2):g}"


Run = Callable[[Path, Path, str, int], None]


@pytest.fixture
def killed() -> Iterator[Run]:
    """Run a week in a process that is killed when it is about to rename its nth file."""
    with WarmPython("grader.grade.class_run", "grader.intake.submissions") as python:

        def week(download: Path, out: Path, problem: str, renaming: int) -> None:
            words = [str(download), str(out), problem, "--die-at", str(renaming)]
            done = python.run("-m", "tests.grader.grade.term_run", *words, cwd=ROOT)
            assert done.returncode == -signal.SIGKILL, done.stderr

        yield week


def renamings(download: Path, out: Path, problem: str) -> int:
    """Return how many files a week's run renames, which is tried in a copy of its folder."""
    tried = out.with_name("tried")
    if out.exists():
        shutil.copytree(out, tried)
    with patch("os.replace", side_effect=os.replace) as rename:
        run_week(download, tried, problem)
    shutil.rmtree(tried)
    return rename.call_count


def exported(out: Path, file: Path, weeks: list[str]) -> bytes:
    """Export the marks of one week after the other; return the gradebook at the end."""
    columns = {problem: f"Problem {problem} ({70 + n})" for n, problem in enumerate(WEEKS)}
    rows: list[list[object]] = [["Student", "ID", "SIS Login ID", "Section", *columns.values()]]
    rows += [["    Points Possible", "", "", "", *[10] * len(WEEKS)]]
    rows += [[s.sortable, s.id, f"u{s.id}", "A", *[""] * len(WEEKS)] for s in STUDENTS]
    file.write_bytes(as_csv(rows).encode())
    for problem in weeks:
        command = ["export", "canvas", str(file), "--reports", str(out), "--problem", problem]
        done = CliRunner().invoke(app, [*command, "--column", columns[problem], "--out", str(file)])
        assert done.exit_code == 0, done.output
    return file.read_bytes()


def test_a_term_ends_in_the_book_of_an_undisturbed_one(
    tmp_path: Path, killed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"seed {SEED}")
    monkeypatch.setattr(class_run, "grade_all", made_up)
    rng = random.Random(SEED)
    term = Term(rng)
    calm, disturbed = tmp_path / "calm", tmp_path / "disturbed"
    for week, problem in enumerate(WEEKS):
        handing_in = [STUDENTS, rng.sample(STUDENTS, 18), STUDENTS, rng.sample(STUDENTS, 15)]
        first = term.hand_in(problem, handing_in[week % 4], late=0.2)
        again = term.hand_in(problem, rng.sample(STUDENTS, 5), late=0.5)
        for name, packed in {"first": first, "again": again}.items():
            download = tmp_path / f"{problem}-{name}.zip"
            download.write_bytes(packed)
            last = renamings(download, disturbed, problem)
            killed(download, disturbed, problem, rng.randint(1, last))
            run_week(download, disturbed, problem)
            run_week(download, calm, problem)
        (tmp_path / "book").mkdir(exist_ok=True)
        (tmp_path / "book/late.toml").write_text("flagged = 0.2\n")
        if week >= 2:
            (tmp_path / "book/corrections.csv").write_text(
                f"submission,problem,test,mark,reason\ncanvas:{CORRECTED},03,,9.5,Graded by hand.\n"
            )
    term.hand_in("02", [s for s in STUDENTS if s.id == REGRADED], late=0)
    (tmp_path / "02-alone.zip").write_bytes(term.download("02"))
    for out in (calm, disturbed):
        run_week(tmp_path / "02-alone.zip", out, "02", [f"canvas:{REGRADED}"])

    book = (disturbed / "gradebook.csv").read_bytes()
    assert book == (calm / "gradebook.csv").read_bytes()
    people = {row["member"]: row for row in csv.DictReader(io.StringIO(book.decode()))}
    filled = exported(disturbed, tmp_path / "a.csv", WEEKS)
    assert filled == exported(calm, tmp_path / "b.csv", [*reversed(WEEKS), *WEEKS])
    _, _, *rows = csv.reader(io.StringIO(filled.decode(), newline=""))
    for student, row in zip(STUDENTS, rows, strict=True):
        assert row[:4] == [student.sortable, str(student.id), f"u{student.id}", "A"]
        expected = [term.mark(student, problem) for problem in WEEKS]
        assert [f"{float(mark):g}" if mark else "" for mark in row[4:]] == expected
        in_book = [people[str(student.id)][id] for id in in_order(people)]
        assert in_book == expected


def in_order(people: dict[str, dict[str, str]]) -> list[str]:
    return [column for column in next(iter(people.values())) if column[:2] in WEEKS]
