"""The tests of each course are collected separately, and invalid tests are refused."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from syrupy.assertion import SnapshotAssertion

from grader.course import Course
from grader.errors import CourseError
from grader.run.collecting import CollectedTest, collect

NewCourse = Callable[[Path], Course]


def collected(course: Course) -> list[CollectedTest]:
    return collect(course.problems(), course.root)


def add(course: Course, source: str) -> None:
    """Append text to the hidden half, which is at the end of the test file."""
    with course.problems()[0].test_file.open("a", encoding="utf-8") as file:
        file.write(f"\n\n{source}\n")


# Several courses in one process


@pytest.fixture
def two_courses(tmp_path: Path, new_course: NewCourse) -> tuple[Course, Course]:
    """Return two courses with tests that differ in their points and imports."""
    courses = new_course(tmp_path / "first"), new_course(tmp_path / "second")
    for course, points in zip(courses, (3, 7), strict=True):
        (problem,) = course.problems()
        text = problem.test_file.read_text(encoding="utf-8")
        text = text.replace("import pytest", "import pytest\nfrom worked_example import POINTS", 1)
        problem.test_file.write_text(text.replace("points(2)", "points(POINTS)"), encoding="utf-8")
        (course.root / "problems/worked_example.py").write_text(f"POINTS = {points}\n")
    return courses


def points(course: Course) -> float:
    return sum(test.points for test in collected(course))


def test_each_course_has_its_own_modules(
    two_courses: tuple[Course, Course], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of the course is used even if a module of the same name is already loaded."""
    mine = ModuleType("worked_example")
    monkeypatch.setitem(sys.modules, "worked_example", mine)
    names, path = {*sys.modules}, [*sys.path]
    first, second = two_courses
    assert [points(each) for each in (first, second, first, second)] == [6, 14, 6, 14]
    assert sys.modules["worked_example"] is mine
    assert sys.path == path
    assert not [name for name in {*sys.modules} - names if name.startswith("problems")]


def test_a_corrected_file_is_read_again(small_course: Course) -> None:
    assert len(collected(small_course)) == 3
    add(small_course, "@pytest.mark.points(1)\ndef test_more(problem):\n    pass")
    assert len(collected(small_course)) == 4


# Environment variables have no effect


def test_the_environment_changes_nothing(
    small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k no_such_test")
    monkeypatch.setenv("PYTEST_PLUGINS", "no.such.plugin")
    settings = "[tool.pytest.ini_options]\naddopts = '-k no_such_test'\n"
    (small_course.root / "pyproject.toml").write_text(settings)
    (small_course.root / "conftest.py").write_text("1 / 0\n")
    assert len(collected(small_course)) == 3


# Refused tests


NOT_PLAIN = {
    "fixture of pytest": "@pytest.mark.points(1)\ndef test_x(problem, tmp_path): pass",
    "own fixture": "@pytest.fixture\ndef ten(): return 10\n"
    "@pytest.mark.points(1)\ndef test_x(problem, ten): pass",
    "skip": "@pytest.mark.skip\ndef test_x(problem): pass",
    "xfail": "@pytest.mark.xfail\ndef test_x(problem): pass",
    "usefixtures": "@pytest.mark.usefixtures('rng')\ndef test_x(problem): pass",
    "mark of a file": "pytestmark = pytest.mark.slow",
    "no mark of points": "def test_x(problem): pass",
    "no points": "@pytest.mark.points()\ndef test_x(problem): pass",
    "0 points": "@pytest.mark.points(0)\ndef test_x(problem): pass",
    "-1 points": "@pytest.mark.points(-1)\ndef test_x(problem): pass",
    "text for points": "@pytest.mark.points('2')\ndef test_x(problem): pass",
    "class": "class TestX:\n    def test_x(self, problem): pass",
    "unittest": "import unittest\nclass TestX(unittest.TestCase):\n    def test_x(self): pass",
    "setup": "def setup_function(): pass",
    "autouse": "@pytest.fixture(autouse=True)\ndef before(): pass",
}


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_invalid_tests_are_refused(
    small_course: Course, snapshot: SnapshotAssertion, name: str
) -> None:
    add(small_course, NOT_PLAIN[name])
    with pytest.raises(CourseError) as refused:
        collected(small_course)
    assert str(refused.value).replace(str(small_course.root), "") == snapshot


def test_forbidden_functions_must_exist(small_course: Course) -> None:
    path = small_course.root / "course.toml"
    path.write_text(path.read_text().replace('["softmax"]', '["softmaxx"]'))
    with pytest.raises(CourseError, match="the unknown function 'softmaxx'; the known .*gelu"):
        collected(small_course)


def forbid_in(course: Course, function: str) -> None:
    with (course.root / "course.toml").open("a") as file:
        file.write(f'\n[problems.forbidden_in]\n{function} = ["gelu"]\n')


def test_functions_forbidden_in_a_function_are_forbidden_in_its_tests(small_course: Course) -> None:
    forbid_in(small_course, "double")
    add(
        small_course,
        """
def doubled(problem):
    return [problem.double(1) for _ in "1"]

@pytest.mark.points(1)
def test_more(problem):
    assert doubled(problem) == [2]

@pytest.mark.points(1)
def test_other(problem):
    assert problem
        """,
    )
    forbidden = {test.name: test.forbidden for test in collected(small_course)}
    assert forbidden["test_doubles"] == forbidden["test_more"] == ("softmax", "gelu")
    assert forbidden["test_other"] == ("softmax",)


def test_an_unloadable_probe_is_reported(small_course: Course) -> None:
    small_course.problems()[0].probe_file.write_text("def probe(:\n")
    first, *_ = collected(small_course)
    with pytest.raises(CourseError, match=r"probe\.py can't be loaded: invalid syntax .*line 1"):
        _ = first.tests.probe


def test_visible_tests_cannot_use_the_solution(small_course: Course) -> None:
    file = small_course.problems()[0].test_file
    text = file.read_text(encoding="utf-8").replace("(problem, size)", "(problem, solution, size)")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match="uses the fixture solution above"):
        collected(small_course)


@pytest.mark.parametrize("source", ["# nothing", "def test_x(:", "import pytest; pytest.exit('')"])
def test_a_file_without_tests_is_an_error(small_course: Course, source: str) -> None:
    small_course.problems()[0].test_file.write_text(f"{source}\n")
    with pytest.raises(CourseError, match="could not collect"):
        collected(small_course)


def test_ctrl_c_ends_collecting(small_course: Course) -> None:
    small_course.problems()[0].test_file.write_text("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        collected(small_course)
