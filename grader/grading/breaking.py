"""Judges tests that students handed in: on the whole catalogue, behind the boundary."""

from __future__ import annotations

from grader.break_result import BreakResult
from grader.course import Problem
from grader.errors import InternalError
from grader.isolation import Boundary, WorkerFailure
from grader.own_tests import OwnTest
from grader.result import Status
from grader.testing.breaking import NoEnd, Target, judge_own_tests

POINTS = 10.0
"""What the tests of one problem are worth."""


def break_submitted(
    problem: Problem, tests: bytes, all_targets: list[Target], boundary: Boundary
) -> BreakResult:
    """Run a student's tests on all targets, each time in a new worker, and judge them.

    Args:
        problem: whose tests they are.
        tests: the student's file.
        all_targets: what to test.
        boundary: behind which both run; it was made with pytest.

    Raises:
        InternalError: something on this machine ended a worker.
    """
    budget = boundary.budget()

    def run(source: bytes) -> list[OwnTest]:
        try:
            return boundary.trial(source, tests, budget)
        except WorkerFailure as failure:
            if failure.status is Status.INTERNAL:
                raise InternalError(str(failure)) from None
            raise NoEnd(_SAID.get(failure.status, "Your tests end their own process.")) from None

    result = judge_own_tests(problem, tests, all_targets, run)
    result.max = POINTS
    return result


_SAID = {
    Status.TIMEOUT: "Your tests do not come to an end.",
    Status.MEMORY: "Your tests need too much memory.",
    Status.BAD_OUTPUT: "How your tests end can't be read.",
}
