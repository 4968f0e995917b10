"""`grader grade` grades the downloads of learning platforms."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.course import Course
from grader.reports.gradebook_csv import write_gradebook
from grader.result import SubmissionResult
from tests.grader.intake.uploads import FILE, ID, RIGHT, WRONG, Files, write, zip_file


def test_the_gradebook_has_a_row_for_each_member(tmp_path: Path) -> None:
    group = SubmissionResult("a + b", 0, "", "", members=("a@x", "=b"), late=True)
    alone = SubmissionResult("cho", 0, "", "")
    write_gradebook([alone, group], [], tmp_path / "gradebook.csv")
    rows = list(csv.DictReader((tmp_path / "gradebook.csv").open(encoding="utf-8-sig")))
    assert [(r["submission"], r["member"], r["late"]) for r in rows] == [
        *(("a + b", "a@x", "late"), ("a + b", "'=b", "late"), ("cho", "", ""))
    ]
    write_gradebook([alone], [], tmp_path / "gradebook.csv")
    assert "member" not in (tmp_path / "gradebook.csv").read_text(encoding="utf-8")


@pytest.fixture
def grade(
    tmp_path: Path, two_problems: Course, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Return a function that runs `grader grade` on files, in the course of two problems."""
    monkeypatch.setattr("grader.cli.own_course", lambda: two_problems)

    def run(files: Files, *options: str) -> Result:
        folder = write(tmp_path / f"class{len(list(tmp_path.iterdir()))}", files)
        command = ["grade", str(folder), "--out", str(tmp_path / "out"), "--jobs", "1", *options]
        return CliRunner().invoke(app, command, env={"COLUMNS": "200"})

    return run


@pytest.mark.slow
@pytest.mark.usefixtures("lent")
def test_the_command_grades_one_problem_after_the_other(
    grade: Callable[..., Result], tmp_path: Path
) -> None:
    files = {
        "ada_LATE_12_98_problem.py": RIGHT,
        "bea_13_99_hw.zip": zip_file({FILE: WRONG}),
    }
    first = grade(files, "--problem", "1")
    assert first.exit_code == 0, first.output
    assert "Canvas download: 2 students, 1 late." in first.output
    assert re.search(r"ada\S*: The submission was late\.", first.output)
    second = grade(
        {
            "ada_12_101_problem.py": WRONG,
            "ada_12_102_problem-1.py": RIGHT,
            "cho_14_103_problem.py": WRONG,
        },
        "--problem",
        "tripling",
    )
    assert second.exit_code == 0, second.output
    assert re.search(
        r"ada\S*: 'problem-1.py' was read, because it is the newest upload", second.output
    )
    assert (
        "Without a submission for this problem, so their marks are unchanged: bea." in second.output
    )
    rows = list(csv.DictReader((tmp_path / "out/gradebook.csv").open(encoding="utf-8-sig")))
    assert [tuple(row.values())[2:] for row in rows] == [
        ("graded", "4", "4", "8", "8", "12", "late"),
        ("graded", "0", "", "0", "4", "13", ""),
        ("graded", "", "0", "0", "4", "14", ""),
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"ada/notes.txt": RIGHT, "bea/hw.ipynb": RIGHT},
        {"ada/a.py": RIGHT, "ada/b.py": WRONG, "bea/c.py": RIGHT, "bea/d.py": WRONG},
        {"ada.rar": b"Rar!", "bea.7z": b"7z"},
    ],
)
@pytest.mark.parametrize("words", [("--problem", "01"), ("--problem", "01", "--dry-run")])
def test_a_class_without_submissions_is_not_graded(
    grade: Callable[..., Result], tmp_path: Path, files: Files, words: tuple[str, ...]
) -> None:
    done = grade(files, *words)
    assert (done.exit_code, (tmp_path / "out/gradebook.csv").exists()) == (2, False)
    assert "Nothing was graded: none of the 2 submissions has a file" in (
        " ".join(done.output.split())
    )


def test_the_command_suggests_the_option(grade: Callable[..., Result], tmp_path: Path) -> None:
    done = grade({"problem.py": RIGHT})
    assert (done.exit_code, (tmp_path / "out").exists()) == (2, False)
    assert f"for example with --problem {ID}" in done.output


def test_the_command_refuses_an_unknown_problem(
    grade: Callable[..., Result], tmp_path: Path
) -> None:
    for name, why in (("03", "is not a problem"), ("ling", "fits more than one"), ("", "fits")):
        done = grade({"ada/problem.py": RIGHT}, "--problem", name)
        assert (done.exit_code, (tmp_path / "out").exists()) == (2, False)
        assert f"'{name}' {why}" in done.output
