"""The archive for Gradescope grades in Gradescope's layout of folders."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from grader.course import Course, own_course
from grader.errors import CourseError, InternalError
from grader.grading.gradescope import build, grade_uploaded
from grader.grading.outcome import internal_result
from grader.grading.settings import Settings
from grader.parts import FOR_AN_AUTOGRADER
from grader.result import Policy, ProblemResult, Status, SubmissionResult, TestResult


def hand_in(root: Path, *names: str) -> None:
    for name in names:
        file = root / "submission" / name / "problem.py"
        file.parent.mkdir(parents=True)
        file.write_text("def double(x): return x + x")


def upload(root: Path, course: Course, status: Status = Status.PASSED) -> dict[str, object]:
    """Grade what is in the folder, by a grader that gives everybody the same status."""

    def grade(submissions, course, settings, jobs, on_result):  # type: ignore[no-untyped-def]
        (submission,) = submissions
        test = TestResult("test_doubles", "it doubles", False, 4, status)
        problem = ProblemResult("01-doubling", "abc", [test])
        result = SubmissionResult(submission.name, 0, "sandbox", "", [problem])
        on_result(internal_result("x", "a fault") if status is Status.INTERNAL else result)

    grade_uploaded(root, course, Settings(), Policy.TITLES, grade)
    return json.loads((root / "results/results.json").read_text())


def test_one_submission_is_graded(tmp_path: Path, small_course: Course) -> None:
    hand_in(tmp_path, "01-doubling")
    data = upload(tmp_path, small_course)
    assert [test["score"] for test in data["tests"]] == [4]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "Hand in 01-doubling/problem.py"),
        (["a/01-doubling", "b/01-doubling"], "several submissions (a, b)"),
    ],
)
def test_what_is_not_one_submission_is_told(
    tmp_path: Path, small_course: Course, names: list[str], words: str
) -> None:
    (tmp_path / "submission").mkdir()
    hand_in(tmp_path, *names)
    data = upload(tmp_path, small_course)
    assert data["score"] == 0
    assert words in str(data["output"])


def test_the_graders_own_fault_leaves_no_score(tmp_path: Path, small_course: Course) -> None:
    hand_in(tmp_path, "01-doubling")
    upload(tmp_path, small_course)
    with pytest.raises(InternalError, match="a fault"):
        upload(tmp_path, small_course, Status.INTERNAL)
    assert not (tmp_path / "results/results.json").exists()


def test_a_students_copy_builds_no_autograder(tmp_path: Path, small_course: Course) -> None:
    small_course.solution(small_course.problems()[0]).unlink()
    with pytest.raises(CourseError, match="instructor's copy"):
        build(small_course, tmp_path, "sandbox", Policy.TITLES)


def test_the_same_course_gives_the_same_archive(tmp_path: Path) -> None:
    archives = [build(own_course(), tmp_path / n, "sandbox", Policy.TITLES) for n in ("a", "b")]
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with zipfile.ZipFile(archives[0]) as archive:
        names = set(archive.namelist())
        modes = {n: archive.getinfo(n).external_attr >> 16 for n in ("setup.sh", "run_autograder")}
    assert all(mode & stat.S_IXUSR for mode in modes.values())
    assert {
        "course/pyproject.toml",
        "course/grader/reports/templates/base.html.j2",
        "course/problems/worked_example.py",
        "course/problems/01-softmax/probe.py",
        "course/problems/01-softmax/fingerprints.json",
        "course/solutions/01-softmax/problem.py",
    } <= names
    assert not [name for name in names if "mistakes" in name or name.endswith(".pyc")]
    parts = {name.split("/")[2] for name in names if name.startswith("course/grader/")}
    assert {part for part in parts if "." not in part} == {*FOR_AN_AUTOGRADER}


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Gradescope's scripts are for bash")
def test_run_autograder_grades(tmp_path: Path, small_course: Course) -> None:
    shutil.copytree(own_course().root / "grader", small_course.root / "grader")
    isolation = "sandbox" if sys.platform == "linux" else "process"
    archive = build(small_course, tmp_path, isolation, Policy.TITLES)
    root = tmp_path / "auto grader"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(root / "source")
    hand_in(root, "01-doubling")
    environment = {"AUTOGRADER_ROOT": str(root), "AUTOGRADER_PYTHON": sys.executable}
    subprocess.run(
        ["bash", str(root / "source/run_autograder")],
        env={**os.environ, **environment},
        check=True,
        timeout=300,
    )
    data = json.loads((root / "results/results.json").read_text())
    assert sum(test["score"] for test in data["tests"]) == 4
