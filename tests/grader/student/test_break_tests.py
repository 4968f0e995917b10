"""`grader break` runs a student's tests on correct files and on known mistakes."""

from __future__ import annotations

import pytest
from rich.console import Console

from grader.course import Course
from grader.errors import UsageError
from grader.student.solved.break_tests import BreakReport, Failure, MistakeCaught, break_problem
from tests.catalogue import write_mistakes

LINE = "    return x + x"
MISTAKES = {
    "triples": ("the number is tripled", LINE, "    return 3 * x"),
    "adds": ("the number is tripled", LINE, "    return x + x + x"),
    "squares": ("the number is multiplied by itself", LINE, "    return x * x"),
}
GOOD = """
import pytest, torch

@pytest.mark.parametrize("number", [0.0, 1.0, 2.0])
def test_numbers(problem, number):
    assert problem.double(torch.tensor(number)) == 2 * number
"""


@pytest.fixture
def course_with_mistakes(small_course: Course) -> Course:
    """Return a course with a few mistakes and a second correct file."""
    folder = small_course.root / "solutions/01-doubling"
    write_mistakes(folder, MISTAKES)
    (folder / "variants").mkdir()
    (folder / "variants/product.py").write_text("def double(x): return 2 * x\n")
    return small_course


def report_on(course: Course, tests: str) -> BreakReport:
    (problem,) = course.problems()
    (problem.folder / "test_mine.py").write_text(tests, encoding="utf-8")
    return break_problem(course, problem, Console(quiet=True))


def test_good_tests_accept_correct_files_and_catch_mistakes(course_with_mistakes: Course) -> None:
    report = report_on(course_with_mistakes, GOOD)
    assert report.right == 2
    assert report.refused == {}
    assert report.mistakes == [
        MistakeCaught("the number is tripled", 2, 2),
        MistakeCaught("the number is multiplied by itself", 1, 1),
    ]


@pytest.mark.slow
def test_a_mistake_that_never_ends_is_caught(course_with_mistakes: Course) -> None:
    folder = course_with_mistakes.root / "solutions/01-doubling"
    write_mistakes(folder, {"loops": ("it never ends", LINE, "    while True: pass")})
    report = report_on(course_with_mistakes, GOOD)
    assert report.mistakes == [MistakeCaught("it never ends", 1, 1)]


@pytest.mark.slow
def test_weak_tests_miss_mistakes_and_strict_tests_refuse_correct_files(
    course_with_mistakes: Course,
) -> None:
    weak = "def test_two(problem):\n    assert problem.double(2) == 4\n"
    missed = [each for each in report_on(course_with_mistakes, weak).mistakes if not each.caught]
    assert [each.text for each in missed] == ["the number is multiplied by itself"]
    strict = "def test_add(problem):\n    assert problem.double.__code__.co_consts == (None,)\n"
    refused = report_on(course_with_mistakes, strict).refused
    assert [*refused] == ["product"]
    assert refused["product"].message.startswith("test_add fails: assert ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("while True: pass", "the tests do not end"),
        ("import os; os._exit(0)", "the tests end their own process"),
        ("import pytest; pytest.exit('enough')", "the tests end the run"),
    ],
)
def test_tests_that_never_end_are_not_run_on_mistakes(
    course_with_mistakes: Course, body: str, message: str
) -> None:
    report = report_on(course_with_mistakes, f"def test_a(problem):\n    {body}\n")
    assert report == BreakReport(2, {"reference": Failure(message, is_over=True)}, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ("def test_a(:\n", "cannot be run: SyntaxError"),
        ("import nothing_of_this_name\n", "cannot be run: ModuleNotFoundError"),
        ("x = 1\n", "cannot be run: it contains no test"),
    ],
)
def test_files_that_cannot_be_run_are_refused(
    course_with_mistakes: Course, tests: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        report_on(course_with_mistakes, tests)


def test_without_tests_break_requests_them(course_with_mistakes: Course) -> None:
    (problem,) = course_with_mistakes.problems()
    with pytest.raises(UsageError, match=r"test_mine\.py does not exist"):
        break_problem(course_with_mistakes, problem, Console(quiet=True))


def test_the_report_lists_refused_files_and_caught_mistakes() -> None:
    mistakes = [MistakeCaught("a", 1, 2), MistakeCaught("b", 1, 1)]
    report = BreakReport(3, {"product": Failure("test_a fails: assert False")}, mistakes)
    assert [*report.lines()] == [
        "Your tests fail on 1 of 3 correct files:",
        "- product: test_a fails: assert False",
        "Your tests catch 1 of 2 mistakes.",
        "",
        "Caught:",
        "- b",
        "",
        "Not caught:",
        "- a (1 of 2 forms)",
    ]
