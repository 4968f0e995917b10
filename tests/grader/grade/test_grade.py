"""Each submission of a class has a row in the gradebook, even an invalid one."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from grader.course import Course
from grader.errors import InternalError
from grader.grade.job import grader_for
from grader.grade.pool import grade_all
from grader.grade.previous import save_result
from grader.grade.settings import Settings
from grader.intake.submissions import find_submissions
from grader.reports.gradebook_csv import write_gradebook
from grader.result import SubmissionResult
from grader.sandbox.starting import TemplateProcess
from tests.grader.intake.uploads import FILE, write
from tests.lent import lent_template

CLASS = {
    "right": "def double(x): return x + x",
    "wrong": "def double(x): return 3 * x",
    "stub": "def double(x): raise NotImplementedError",
    "syntax": "def double(x) return x",
    "endless": "def double(x):\n    while True: pass",
    "endless at import": "while True: pass",
    "quits": "import os\ndef double(x): os._exit(0)",
    "quits at import": "import os\nos._exit(0)",
    "empty": "",
}


def grade(course: Course, folder: Path, jobs: int = 1) -> dict[str, SubmissionResult]:
    results: dict[str, SubmissionResult] = {}
    submissions = find_submissions(folder, course)
    settings = Settings(call_seconds=0.5)
    grade_all(submissions, course, settings, jobs, lambda r: results.update({r.submission: r}))
    assert len(results) == len(submissions)
    return results


@pytest.fixture(scope="module")
def results(
    tmp_path_factory: pytest.TempPathFactory,
    new_course: Callable[[Path], Course],
    origin: TemplateProcess,
) -> dict[str, SubmissionResult]:
    """Grade the class of this file once, and return the results."""
    course = new_course(tmp_path_factory.mktemp("course"))
    folder = tmp_path_factory.mktemp("class")
    write(folder, {f"{name}/{FILE}": source for name, source in CLASS.items()})
    (folder / "nothing").mkdir()
    with lent_template(origin):
        return grade(course, folder)


@pytest.mark.parametrize(
    ("name", "points", "statuses"),
    [
        ("right", 4, {"passed"}),
        ("wrong", 0, {"failed"}),
        ("stub", 0, {"not_implemented"}),
        ("syntax", 0, {"error"}),
        ("endless", 0, {"timeout"}),
        ("endless at import", 0, {"timeout"}),
        ("quits", 0, {"crash"}),
        ("quits at import", 0, {"crash"}),
        ("empty", 0, {"missing"}),
        ("nothing", 0, {"missing"}),
    ],
)
def test_each_submission_gets_the_right_points(
    results: dict[str, SubmissionResult], name: str, points: float, statuses: set[str]
) -> None:
    result = results[name]
    assert (result.points, result.max) == (points, 4)
    assert {test.status.value for p in result.problems for test in p.tests} == statuses


def test_submissions_without_work_are_not_attempted(results: dict[str, SubmissionResult]) -> None:
    untouched = {name for name, result in results.items() if result.status == "not_attempted"}
    assert untouched == {"stub", "empty", "nothing"}


def test_the_gradebook_has_a_row_for_each_submission(
    results: dict[str, SubmissionResult], tmp_path: Path
) -> None:
    write_gradebook(results.values(), ["01-doubling"], tmp_path / "gradebook.csv")
    rows = list(csv.reader((tmp_path / "gradebook.csv").open(encoding="utf-8-sig")))
    assert rows[0] == ["submission", "identity", "status", "01-doubling", "total", "max"]
    assert ["right", "right", "graded", "4", "4", "4"] in rows
    assert len(rows) == len(results) + 1
    assert [row[0] for row in rows[1:]] == sorted(results)


def test_a_result_is_saved_completely(results: dict[str, SubmissionResult], tmp_path: Path) -> None:
    path = save_result(results["wrong"], tmp_path)
    data = json.loads(path.read_text())
    assert data["schema"] == 7
    assert data["points"] == 0
    assert data["problems"][0]["sha256"]
    tests = data["problems"][0]["tests"]
    assert sum(test["max"] for test in tests) == 4
    assert all(test["message"] for test in tests)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can keep a process on a core")
def test_a_job_and_its_processes_stay_on_one_core(small_course: Course) -> None:
    cores, threads = os.sched_getaffinity(0), torch.get_num_threads()
    others = child_processes()
    torch.set_num_threads(2)
    try:
        with grader_for(small_course, Settings(), max(cores)):
            mine = [os.getpid(), *(child_processes() - others)]
            assert len(mine) > 1
            assert torch.get_num_threads() == 1
            assert all(os.sched_getaffinity(process) == {max(cores)} for process in mine)
    finally:
        os.sched_setaffinity(0, cores)
        torch.set_num_threads(threads)


def child_processes() -> set[int]:
    return {int(child) for child in Path("/proc/thread-self/children").read_text().split()}


@pytest.mark.slow
@pytest.mark.usefixtures("lent")
def test_no_student_is_graded_when_the_reference_fails(
    small_course: Course, tmp_path: Path
) -> None:
    solution = small_course.solution(small_course.problems()[0])
    solution.write_text("def double(x):\n    return x\n")
    (tmp_path / "class" / "ada" / "01-doubling").mkdir(parents=True)
    with pytest.raises(InternalError, match="reference solution of 01-doubling fails"):
        grade(small_course, tmp_path / "class")


@pytest.mark.slow
@pytest.mark.usefixtures("lent")
def test_errors_of_the_course_are_reported(small_course: Course, tmp_path: Path) -> None:
    path = small_course.root / "course.toml"
    path.write_text(path.read_text().replace('["softmax"]', '["softmaxx"]'))
    for name in ("ada", "bob", "cy"):
        (tmp_path / "class" / name / "01-doubling").mkdir(parents=True)
    with pytest.raises(InternalError, match="01-doubling forbids .*'softmaxx'"):
        grade(small_course, tmp_path / "class")
