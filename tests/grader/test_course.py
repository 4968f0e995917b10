"""The points of this course are consistent, and its problems work in a student's pytest.

`grader author audit` shows that every stub scores 0 and every correct file gets all points.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course import Problem, own_course
from grader.errors import CourseError
from grader.result import ProblemResult, Status
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite
from tests.catalogue import first_case_ids
from tests.warm import WarmPython


def test_the_points_of_the_tests_sum_to_those_of_the_problems(course_suite: Suite) -> None:
    points = {problem.id: 0.0 for problem in own_course().problems()}
    for test in course_suite.tests:
        points[test.problem.id] += test.points
    assert points == pytest.approx({p.id: p.entry.points for p in own_course().problems()})
    assert sum(problem.entry.points for problem in own_course().of_part("one")) == 100


@pytest.mark.parametrize("problem", own_course().problems(), ids=lambda problem: problem.id)
def test_visible_tests_have_the_points_in_the_readme(course_suite: Suite, problem: Problem) -> None:
    """The front page promises 60 % of the points for visible tests."""
    tests = [test for test in course_suite.tests if test.problem.id == problem.id]
    visible = sum(test.points for test in tests if not test.hidden)
    readme = (problem.folder / "README.md").read_text(encoding="utf-8")
    (promised,) = re.findall(r"\((\d+) for the tests that you see", readme)
    assert visible == pytest.approx(float(promised))
    assert visible == pytest.approx(0.6 * problem.entry.points)


@pytest.mark.parametrize(
    "problem",
    [
        problem if problem.id[:2] == "01" else pytest.param(problem, marks=pytest.mark.slow)
        for problem in own_course().problems()
    ],
    ids=lambda problem: problem.id,
)
def test_functions_that_return_none_get_no_points(
    at_home: Callable[..., ProblemResult], problem: Problem
) -> None:
    text = problem.original.read_text("utf-8").replace("raise NotImplementedError", "return None")
    assert [test.id for test in at_home(problem.id, text).tests if test.points] == []


@pytest.mark.slow
def test_the_test_for_forbidden_calls_reports_a_typo(course_suite: Suite, tmp_path: Path) -> None:
    course = own_course()

    def with_typo(problem: Problem) -> Path:
        source = course.solution(problem).read_text(encoding="utf-8")
        path = tmp_path / f"{problem.id}.py"
        path.write_text(source.replace("return ", "return typo + "), encoding="utf-8")
        return path

    session = Session(LocalFiles(with_typo), hidden=True, diagnose=False)
    course_suite.run(session, tests=first_case_ids(course_suite))
    for result in session.results.values():
        found = [test for test in result.tests if test.name.endswith("is_your_own")]
        assert len(found) == (result.id != "08-sampling")
        if not found:
            continue
        (watching,) = found
        assert watching.message == "This can't be judged yet: NameError: name 'typo' is not defined"
        assert watching.status is Status.ERROR
        assert not any("judged" in test.message for test in result.tests if test is not watching)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy the problems into a folder with a space in its name."""
    root = tmp_path_factory.mktemp("a course")
    for name in ("problems", "solutions"):
        shutil.copytree(own_course().root / name, root / name)
    for name in ("pyproject.toml", "course.toml"):
        shutil.copy(own_course().root / name, root)
    return root


@pytest.mark.slow
def test_all_stubs_score_nothing_in_a_students_pytest(clone: Path, warm_python: WarmPython) -> None:
    problems = clone / "problems"
    for problem in own_course().problems():
        shutil.copy(problem.stub, problems / problem.id)
    stubs = warm_python.run("-m", "pytest", cwd=problems)
    assert stubs.returncode == 1
    assert "Traceback" not in stubs.stdout + stubs.stderr
    assert "\n0 of " in stubs.stdout


@pytest.mark.slow
def test_one_problem_is_tested_in_its_folder(clone: Path, warm_python: WarmPython) -> None:
    folder = clone / "problems/01-softmax"
    shutil.copy(own_course().problems()[0].stub, folder)
    stub = warm_python.run("-m", "pytest", cwd=folder)
    assert stub.returncode == 1
    assert "Traceback" not in stub.stdout + stub.stderr
    assert "\n0 of " in stub.stdout
    assert "Next: " in stub.stdout
    shutil.copy(clone / "solutions/01-softmax/problem.py", folder)
    solved = warm_python.run("-m", "pytest", cwd=folder)
    assert solved.returncode == 0, solved.stdout
    assert "All of these tests pass" in solved.stdout


@pytest.mark.parametrize(
    "name", ["03", "3", "03-scaled-attention", "scaled", "problems/03-scaled-attention/"]
)
def test_a_problem_is_found_by_many_names(name: str) -> None:
    assert [p.id for p in own_course().select([name])] == ["03-scaled-attention"]


@pytest.mark.parametrize("name", ["99", "attention", "relu"])
def test_an_unclear_name_is_refused_with_the_known_names(name: str) -> None:
    with pytest.raises(CourseError, match="01-softmax"):
        own_course().select([name])
