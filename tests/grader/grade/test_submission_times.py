"""A file that was submitted several times has the time of its first submission."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from grader.grade.dry_run import forecast_lines, make_forecast
from grader.grade.preparing import prepare
from grader.grade.settings import Settings
from grader.gradebook.folder import GradebookFolder
from grader.intake.submissions import find_submissions
from grader.result import ProblemResult
from tests.grader.grade.conftest import OTHER
from tests.grader.intake.uploads import write

IN_TIME, A_WEEK_LATER = "2026-11-02T20:00:00Z", "2026-11-09T20:00:00Z"
LATE = "share = 0.5\n[deadlines]\n01 = 2026-11-03T00:00:00Z\n02 = 2026-11-10T00:00:00Z\n"


@pytest.fixture(autouse=True)
def late_policy(term: Any) -> None:
    """Write a late policy that subtracts half of the points."""
    term.write_book("late.toml", LATE)


def write_clone(folder: Path, pushed: str, **sources: str) -> Path:
    """Write Ada's clone, which she pushed at the time `pushed`. `p01` is her file for 01."""
    scores = f"username,datetime,submission_tag\nada,{pushed},submit/1\n"
    files = {"scores.csv": scores} if pushed else {}
    ids, name = {"p01": "01-doubling", "p02": OTHER}, "hw_submissions_2026_11_24_T_09_05_00"
    files |= {f"{name}/hw-ada/{ids[p]}/problem.py": text for p, text in sources.items()}
    return write(folder, files)


def problems(run: Any) -> dict[str, ProblemResult]:
    (result,) = run.results
    return {problem.id[:2]: problem for problem in result.problems}


@pytest.mark.parametrize("only", ["", "01"])
@pytest.mark.parametrize("options", [{}, {"fresh": True}, {"settings": {"seed": 1}}])
def test_a_push_of_a_different_problem_makes_no_file_late(
    only: str, options: dict[str, object], term: Any, tmp_path: Path
) -> None:
    term.grade(write_clone(tmp_path / "week1", IN_TIME, p01=term.right), only="01")
    week2 = write_clone(tmp_path / "week2", A_WEEK_LATER, p01=term.right, p02=term.right)
    for _ in range(2):
        graded = problems(term.grade(week2, only=only, **options))
        assert (graded["01"].points, graded["01"].handed_in) == (4, "2026-11-02T20:00:00+00:00")
    if not only:
        assert graded["02"].handed_in == "2026-11-09T20:00:00+00:00"


def test_changed_bytes_have_a_new_time(term: Any, tmp_path: Path) -> None:
    term.grade(write_clone(tmp_path / "week1", IN_TIME, p01=term.wrong, p02=term.wrong))
    graded = problems(term.grade(write_clone(tmp_path / "week2", A_WEEK_LATER, p01=term.right)))
    assert graded["01"].points < 4
    assert graded["01"].handed_in == "2026-11-09T20:00:00+00:00"


def test_an_older_download_gives_the_earlier_time(term: Any, tmp_path: Path) -> None:
    """The order in which downloads are graded does not change the mark."""
    week1 = write_clone(tmp_path / "week1", IN_TIME, p01=term.right)
    week2 = write_clone(tmp_path / "week2", A_WEEK_LATER, p01=term.right, p02=term.right)
    assert problems(term.grade(week2))["01"].points < 4
    graded = problems(term.grade(week1, only="01"))
    assert (term.graded, graded["01"].points) == ([], 4)
    assert graded["02"].handed_in == "2026-11-09T20:00:00+00:00"


def test_a_download_without_times_removes_no_time(term: Any, tmp_path: Path) -> None:
    term.grade(write_clone(tmp_path / "bare", "", p01=term.right))
    late = write_clone(tmp_path / "late", A_WEEK_LATER, p01=term.right)
    assert problems(term.grade(late))["01"].points < 4
    graded = problems(term.grade(write_clone(tmp_path / "bare again", "", p01=term.right)))
    assert graded["01"].points < 4


def test_a_late_flag_is_ignored_for_bytes_in_time(term: Any, tmp_path: Path) -> None:
    """Canvas reports only that a file was late, and not when it was submitted."""
    names = {"in time": "ada_7_90_problem.py", "late": "ada_LATE_7_91_problem.py"}
    folders = {}
    for when, name in names.items():
        folders[when] = write(tmp_path / when, {name: term.right})
    for order, expected in {("in time", "late"): False, ("late", "in time"): False}.items():
        for when in order:
            graded = problems(term.grade(folders[when], only="01"))
        assert graded["01"].late is expected
        shutil.rmtree(term.out)


def test_the_dry_run_reports_no_change_for_unchanged_bytes(term: Any, tmp_path: Path) -> None:
    term.grade(write_clone(tmp_path / "week1", IN_TIME, p01=term.right), only="01")
    week2 = write_clone(tmp_path / "week2", A_WEEK_LATER, p01=term.right, p02=term.right)
    submissions = find_submissions(week2, term.course)
    book = GradebookFolder(term.out.parent / "book")
    ready = prepare(submissions, term.course, Settings(), term.out, people={})
    graded = make_forecast(ready, Settings(), book)
    assert graded.late == set()
    assert not any("would change" in text for text in forecast_lines(graded))
