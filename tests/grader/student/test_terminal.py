"""`uv run pytest` prints a short report about a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from grader.course import Course
from tests.conftest import add_problem
from tests.warm import WarmPython

StudentPytest = Callable[..., Any]


@pytest.mark.slow
def test_a_stub_gets_one_line_for_each_function(course: Course, warm_python: WarmPython) -> None:
    done = warm_python.run("-m", "pytest", cwd=course.root / "problems/01-softmax")
    lines = done.stdout.splitlines()
    assert len(lines) < 16
    assert sum("softmax, line 39: 7 tests wait for it" in line for line in lines) == 1
    assert sum(" wait for it" in line for line in lines) == 2
    assert any(line.startswith("Next: ") for line in lines)
    assert " 9 not written yet" in lines[-1]


SCREENS = {
    "right": ("def double(x): return x + x", []),
    "right, all tests": ("def double(x): return x + x", ["-v"]),
    "wrong": ("def double(x): return 3 * x", []),
    "wrong, all tests": ("def double(x): return 3 * x", ["-v"]),
    "wrong, hidden tests": ("def double(x): return 3 * x", ["--hidden"]),
    "right for one case": ("def double(x): return x + x if len(x) == 1 else 3 * x", []),
    "prints": ("def double(x):\n    print('x has', x.numel())\n    return 3 * x", []),
    "prints before it stops": ("print('so far')\n1 / 0", []),
}
"""The text of a file and pytest's options, for each screen."""


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_shows_the_first_failure_and_points(
    student_pytest: StudentPytest, snapshot: SnapshotAssertion, name: str
) -> None:
    source, options = SCREENS[name]
    assert student_pytest(source, *options).screen == snapshot


@pytest.mark.slow
def test_a_solved_problem_mentions_compare_if_there_are_solutions(
    student_pytest: StudentPytest, small_course: Course
) -> None:
    output = "Other solutions, and their costs: uv run grader compare 01"
    right = "def double(x): return x + x"
    assert output not in student_pytest(right).lines
    (problem,) = small_course.problems()
    small_course.solution(problem).with_name("compare.py").write_text("")
    assert output in student_pytest(right).lines
    assert output not in student_pytest("def double(x): return 3 * x").lines


LOOKS = """
import pytest
import torch

from grader.run.compare import check

@pytest.mark.points(1)
def test_doubles(problem):
    "It doubles"
    check(problem.double(torch.ones(2)), torch.full((2,), 2.0), "double(x)")

@pytest.mark.points(1)
def test_again(problem):
    "It doubles again"
    check(problem.double(torch.ones(3)), torch.full((3,), 2.0), "double(x)")

@pytest.mark.points(1)
@pytest.mark.inspection_only
def test_rule(problem):
    "A rule is kept"
    check(problem.double(torch.ones(4)), torch.full((4,), 2.0), "double(x)")
"""


@pytest.mark.parametrize("options", [[], ["-v"]], ids=["first", "all"])
def test_a_rule_that_depends_on_a_wrong_function_is_not_judged(
    student_pytest: StudentPytest,
    small_course: Course,
    snapshot: SnapshotAssertion,
    options: list[str],
) -> None:
    small_course.problems()[0].test_file.write_text(LOOKS, encoding="utf-8")
    assert student_pytest("def double(x): return 3 * x", *options).screen == snapshot


@pytest.fixture
def two_problems(
    student_pytest: StudentPytest, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> StudentPytest:
    """Return a function that runs pytest in the root of a course with an unwritten problem."""
    add_problem(small_course.root, "02-doubling-again")
    monkeypatch.chdir(small_course.root)
    return student_pytest


@pytest.mark.parametrize("factor", [2, 3])
def test_from_the_root_the_table_comes_last(
    two_problems: StudentPytest, snapshot: SnapshotAssertion, factor: int
) -> None:
    assert two_problems(f"def double(x): return {factor} * x").screen == snapshot


def test_the_option_tb_restores_pytests_reports(student_pytest: StudentPytest) -> None:
    text = student_pytest("def double(x): return 3 * x", "--tb=short").text
    assert "FAILURES" in text
    assert "points" not in text


PRINTS = """
def double(x):
    for number in range({lines}):
        print(number, "x" * {width})
    return {answer}
"""


def test_long_output_is_cut(student_pytest: StudentPytest) -> None:
    text = student_pytest(PRINTS.format(lines=100, width=200, answer="3 * x")).text
    assert text.count("xxxx…") == 10
    assert "and 90 lines more; `uv run pytest -s` shows all" in text
    assert max(map(len, text.splitlines())) <= 120


def test_output_of_correct_code_is_not_shown(student_pytest: StudentPytest) -> None:
    assert "xxxx" not in student_pytest(PRINTS.format(lines=5, width=9, answer="x + x")).text
