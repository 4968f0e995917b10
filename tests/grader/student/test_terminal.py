"""What `uv run pytest` shows of a problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

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
    assert "14 not written yet" in lines[-1]


def test_a_slip_is_shown_with_points_and_what_to_look_at(student_pytest: StudentPytest) -> None:
    done = student_pytest("def double(x):\n    return 3 * x\n", "--hidden")
    assert done.status == 1
    assert "0 of 4 points." in done.lines
    assert any(line.startswith("✗ double returns twice its argument") for line in done.lines)
    assert "1 other test may well pass once this one does." in done.text
    assert "got      [3.0000]" in done.text
    assert "xxx" in done.text
    assert "2 to look at" in done.lines[-1]  # of one of them two cases


def test_a_right_answer_is_praised_and_hidden_tests_are_announced(
    student_pytest: StudentPytest,
) -> None:
    lines = student_pytest("def double(x): return x + x").lines
    assert "✓ 1 of 1 test passes" in lines
    assert "✓ double returns twice its argument" not in lines
    assert "All of these tests pass. Well done!" in lines
    assert "2 of 2 points." in lines
    assert "1 hidden test checks more when your work is graded." in lines


@pytest.mark.slow
def test_what_opens_once_a_problem_is_solved_is_named_where_a_copy_has_it(
    student_pytest: StudentPytest, small_course: Course
) -> None:
    told = "How others write it, and what that costs: uv run grader compare 01"
    right = "def double(x): return x + x"
    assert told not in student_pytest(right).lines
    (problem,) = small_course.problems()
    small_course.solution(problem).with_name("compare.py").write_text("")
    assert told in student_pytest(right).lines
    assert told not in student_pytest("def double(x): return 3 * x").lines


def test_all_tests_are_listed_when_that_is_asked_for(student_pytest: StudentPytest) -> None:
    lines = student_pytest("def double(x): return x + x", "-v").lines
    assert "✓ double returns twice its argument" in lines


def test_points_are_those_of_whole_tests(student_pytest: StudentPytest) -> None:
    source = "def double(x): return x + x if len(x) == 1 else 3 * x"
    lines = student_pytest(source).lines
    assert "0 of 2 points." in lines
    assert "1 to look at" in lines[-1]


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


def test_a_rule_that_depends_on_what_is_wrong_waits(
    student_pytest: StudentPytest, small_course: Course
) -> None:
    small_course.problems()[0].test_file.write_text(LOOKS, encoding="utf-8")
    text = student_pytest("def double(x): return 3 * x").text
    assert "1 other test may well pass once this one does. 1 test waits for it. All: " in text
    assert "A rule is kept" not in text
    full = student_pytest("def double(x): return 3 * x", "-v").lines
    assert any(line.startswith("○ A rule is kept — This can't be judged yet") for line in full)


@pytest.mark.slow
def test_only_the_first_message_is_shown_unless_all_are_wanted(
    student_pytest: StudentPytest, small_course: Course
) -> None:
    (problem,) = small_course.problems()
    test = "@pytest.mark.points(1)\ndef test_{0}(problem):\n    problem.double({0})"
    more = [test.format(n) for n in range(3)]
    problem.test_file.write_text("\n\n".join(["import pytest", *more]), encoding="utf-8")
    source = "def double(x): raise ValueError(f'number {x}')"
    short, full = student_pytest(source), student_pytest(source, "-v")
    assert [f"ValueError: number {n}" in short.lines for n in range(3)] == [True, False, False]
    assert "2 other tests may well pass once this one does." in short.text
    assert "All: uv run pytest -v" in short.text
    assert [f"ValueError: number {n}" in full.lines for n in range(3)] == [True, True, True]
    assert "LOOK" in full.text


@pytest.fixture
def two_problems(
    student_pytest: StudentPytest, small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> StudentPytest:
    """Run pytest from the root of a course of two problems, of which the second is unwritten."""
    add_problem(small_course.root, "02-doubling-again")
    monkeypatch.chdir(small_course.root)
    return student_pytest


def test_from_the_root_the_table_of_all_stands_last(two_problems: StudentPytest) -> None:
    lines = two_problems("def double(x): return x + x").lines
    assert "2 of 4 points." in lines
    assert any(line.startswith("01-doubling") and line.endswith("done") for line in lines)
    end = lines.index("2 of 4 points.")
    assert lines[end + 1] == "02-doubling-again: Next: double (line 2) in problem.py."
    assert lines[end + 2] == "For the details: cd problems/02-doubling-again && uv run pytest"
    assert "✓ double returns twice its argument" not in lines


def test_from_the_root_the_first_wrong_answer_is_shown_before_the_table(
    two_problems: StudentPytest,
) -> None:
    lines = two_problems("def double(x): return 3 * x").lines
    assert lines.index("got      [3.0000]") < lines.index("0 of 4 points.")
    assert two_problems("def double(x): return x + x", "-k", "1").text.count("of 4 points") == 0


def test_a_style_of_traceback_brings_back_what_pytest_shows(student_pytest: StudentPytest) -> None:
    text = student_pytest("def double(x): return 3 * x", "--tb=short").text
    assert "FAILURES" in text
    assert "points" not in text


def test_what_code_prints_when_it_is_asked_for_mistakes_is_not_shown(
    student_pytest: StudentPytest,
) -> None:
    source = "def double(x):\n    print(x.tolist())\n    return 3 * x"
    text = student_pytest(source).text
    assert text.count("[1.0]") == 1
    assert "[3.0]" not in text


def test_the_help_ends_where_the_screen_ends(student_pytest: StudentPytest) -> None:
    *_, others, points, summary = student_pytest("def double(x): return 3 * x", "--hidden").lines
    assert others.startswith("1 other test may well pass")
    assert points == "0 of 4 points."
    assert "2 to look at" in summary


PRINTS = """
def double(x):
    for number in range({lines}):
        print(number, "x" * {width})
    return {answer}
"""


def test_what_the_first_wrong_case_prints_stands_under_its_message(
    student_pytest: StudentPytest,
) -> None:
    source = "def double(x):\n    print('x has', x.numel())\n    return 3 * x"
    lines = student_pytest(source).lines
    head = lines.index("Your code printed:")
    assert lines[head + 1] == "x has 1"
    assert "x has 2" not in lines
    assert head > max(n for n, line in enumerate(lines) if line.startswith("expected"))


def test_much_that_is_printed_is_cut(student_pytest: StudentPytest) -> None:
    text = student_pytest(PRINTS.format(lines=100, width=200, answer="3 * x")).text
    assert text.count("xxxx…") == 10
    assert "and 90 lines more; `uv run pytest -s` shows all" in text
    assert max(map(len, text.splitlines())) <= 120


def test_what_right_code_prints_is_not_shown(student_pytest: StudentPytest) -> None:
    assert "xxxx" not in student_pytest(PRINTS.format(lines=5, width=9, answer="x + x")).text


def test_what_a_file_prints_before_it_stops_is_shown(student_pytest: StudentPytest) -> None:
    assert "so far" in student_pytest("print('so far')\n1 / 0").lines
