"""A record of the audit contains the outcome of each test for each file. Records are compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.author.audit import run_audit
from grader.author.record import (
    Record,
    RecordedTest,
    Records,
    differences,
    read_records,
    records_of,
    write_records,
)
from grader.course import Course
from grader.errors import UsageError
from grader.result import ProblemResult, Status, TestResult
from tests.results import result_of


def records(course: Course) -> Records:
    return records_of(run_audit(course, course.problems(), 1))


def test_two_records_of_one_course_are_equal(small_course: Course, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write_records(records(small_course), first)
    write_records(records(small_course), second)
    assert first.read_text() == second.read_text()
    assert list(differences(read_records(first), records(small_course))) == []
    stub = '"stub stub": {\n    "points": 0,\n    "named": [],\n    "not_passed": {\n'
    assert stub in first.read_text().replace("0.0,", "0,")


@pytest.mark.slow
def test_a_changed_test_lists_the_affected_files(
    small_course: Course, tmp_path: Path, new_course: Callable[[Path], Course]
) -> None:
    before = records(small_course)
    changed = new_course(tmp_path / "changed")
    path = changed.root / "problems/01-doubling/test_doubling.py"
    text = path.read_text().replace(
        '"double(x)")\n\n\n# ---', '"double(x)")\n    assert size < 2\n\n\n# ---'
    )
    path.write_text(
        text + "\n\n@pytest.mark.points(0.5)\ndef test_new(problem):\n    '''It is new'''\n"
    )
    after = records(changed)
    assert list(differences(before, after))[0] == "01-doubling: test_new is new"
    output = [line for line in differences(before, after) if "solution" in line]
    assert output == [
        "01-doubling: solution solution has 3.5 points, had 4",
        "01-doubling: solution solution: test_doubles[2] is failed, was passed",
    ]


def test_every_kind_of_difference_is_reported() -> None:
    before = {
        "01-a": Record(
            {"test_a": 1, "test_b": 2, "test_c": 1},
            {
                "mistake x": RecordedTest(1, ["x"], {"test_b": "failed", "test_c": "error"}),
                "mistake y": RecordedTest(4, [], {}),
                "submission ada": RecordedTest(4, [], {}),
            },
        ),
        "02-b": Record({"test_a": 1}, {"stub stub": RecordedTest(0, [], {})}),
    }
    now = {
        "01-a": Record(
            {"test_a": 1, "test_b": 3, "test_d": 1},
            {
                "mistake x": RecordedTest(1, [], {"test_b": "error", "test_d": "failed"}),
                "variant z": RecordedTest(5, [], {}),
            },
        )
    }
    assert list(differences(before, now)) == [
        "01-a: test_b is worth 3, was 2",
        "01-a: test_c is gone",
        "01-a: test_d is new",
        "01-a: mistake x is named nothing, was x",
        "01-a: mistake x: test_b is error, was failed",
        "01-a: mistake x: test_d is failed, was not there",
        "01-a: mistake y is gone",
        "01-a: variant z is new",
    ]


def test_only_recorded_submissions_are_compared(small_course: Course) -> None:
    audit = run_audit(small_course, small_course.problems(), 1)
    tests = [TestResult("test_doubles[1]", "It is doubled", False, 1.0, Status.FAILED)]
    problem = ProblemResult("01-doubling", tests=tests, mistakes=[["b"], ["a"]])
    with_ada = records_of(audit, [result_of("ada", problem)])
    ada = with_ada["01-doubling"].candidates["submission ada"]
    assert ada == RecordedTest(0, ["a", "b"], {"test_doubles[1]": "failed"})
    assert list(differences(with_ada, records_of(audit))) == []
    assert list(differences(records_of(audit), with_ada)) == ["01-doubling: submission ada is new"]


def test_a_different_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--record"):
        read_records(tmp_path / "none.json")
    (tmp_path / "other.json").write_text('{"01": 3}')
    with pytest.raises(UsageError, match="not written by --record"):
        read_records(tmp_path / "other.json")
