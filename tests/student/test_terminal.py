"""What `uv run pytest` shows of a problem."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

from grader.course import Course

StudentPytest = Callable[..., Any]


def test_a_stub_gets_one_line_for_each_test(course: Course) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest"],
        cwd=course.root / "problems/01-softmax",
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    lines = done.stdout.splitlines()
    assert len(lines) < 40
    assert sum("not written yet: softmax" in line for line in lines) > 3
    assert any(line.startswith("Next: ") for line in lines)


def test_a_slip_is_shown_with_points_and_what_to_look_at(student_pytest: StudentPytest) -> None:
    done = student_pytest("def double(x):\n    return 3 * x\n", "--hidden")
    assert done.status == 1
    assert "0 of 4 points." in done.lines
    assert "Look at this first: double returns twice its argument." in done.lines
    assert "got      [3.0000]" in done.text
    assert "xxx" in done.text
    assert "3 to look at" in done.lines[-1]


def test_a_right_answer_is_praised_and_hidden_tests_are_announced(
    student_pytest: StudentPytest,
) -> None:
    lines = student_pytest("def double(x): return x + x").lines
    assert "✓ double returns twice its argument" in lines
    assert "All of these tests pass. Well done!" in lines
    assert "2 of 2 points." in lines
    assert "1 hidden test checks more when your work is graded." in lines


def test_only_the_first_messages_are_shown_unless_all_are_wanted(
    student_pytest: StudentPytest, small_course: Course
) -> None:
    (problem,) = small_course.problems()
    more = "\n\n".join(f"def test_{n}(problem):\n    problem.double({n})" for n in range(3))
    problem.test_file.write_text(more, encoding="utf-8")
    source = "def double(x): raise ValueError(f'number {x}')"
    short, full = student_pytest(source), student_pytest(source, "-v")
    assert [f"ValueError: number {n}" in short.lines for n in range(3)] == [True, True, False]
    assert "For the other messages: uv run pytest -v" in short.lines
    assert [f"ValueError: number {n}" in full.lines for n in range(3)] == [True, True, True]
    assert "LOOK" in full.text


def test_a_style_of_traceback_brings_back_what_pytest_shows(student_pytest: StudentPytest) -> None:
    text = student_pytest("def double(x): return 3 * x", "--tb=short").text
    assert "FAILURES" in text
    assert "points" not in text


def test_what_code_prints_when_it_is_asked_for_mistakes_is_not_shown(
    student_pytest: StudentPytest,
) -> None:
    source = "def double(x):\n    print(x.tolist())\n    return 3 * x"
    assert "[3.0]" not in student_pytest(source).text
