"""`grader break`: tells how good the tests are that one wrote."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.code.interrupt import DoesNotEnd, time_limit
from grader.code.quiet import quiet
from grader.course import OWN_TESTS, Course, Problem
from grader.errors import UsageError
from grader.result import BreakResult
from grader.run.own_tests import OwnTest, as_problem, run_own_tests
from grader.run.worth_of_tests import NoEnd, judge_own_tests, opened, targets

_SECONDS = 10.0


def break_problem(course: Course, problem: Problem, path: Path | None = None) -> BreakResult:
    """Run one's own tests in this process, on all that is at hand to try them on.

    Args:
        course: where solutions may be; otherwise what the students' copy has is used.
        problem: which.
        path: the file of tests; by default the one in the problem's folder.

    Raises:
        UsageError: there are no tests, or nothing to try them on.
    """
    path = path or problem.folder / OWN_TESTS
    if not path.is_file():
        raise UsageError(f"There is no {path}. Write tests into it, such as\n\n{_EXAMPLE}")
    tests = path.read_bytes()
    has_solutions = course.solution(problem).is_file()
    found = targets(course, problem) if has_solutions else opened(problem)
    return judge_own_tests(problem, tests, found, lambda *asked: _run(tests, *asked))


_EXAMPLE = """\

def test_rows(problem):
    ...what you want to be true, with assert
"""


def _run(
    tests: bytes, source: bytes, without: Sequence[str], first: Sequence[str]
) -> list[OwnTest]:
    """Run all tests on a file, so that each says what it catches.

    Raises:
        Unusable: they can't be run.
        NoEnd: they took too long.
    """
    module = as_problem(source)
    try:
        with quiet(), time_limit(_SECONDS):
            return run_own_tests(tests, module, (DoesNotEnd, KeyboardInterrupt), without=without)
    except DoesNotEnd:
        raise NoEnd("Your tests do not come to an end.") from None
