"""Judges tests that students handed in: on the whole catalogue, behind the boundary."""

from __future__ import annotations

import random
from collections.abc import Sequence

from grader.boundary.boundary import Boundary
from grader.boundary.connection import WorkerFailure
from grader.course import Problem
from grader.errors import InternalError
from grader.grade.own_tests_job import JOB, Report, job_data
from grader.result import BREAK_POINTS, BreakResult, Status
from grader.run.own_tests import OwnTest
from grader.run.shaking import shaken
from grader.run.worth_of_tests import NoEnd, Target, judge_own_tests


def break_submitted(
    problem: Problem, tests: bytes, all_targets: list[Target], boundary: Boundary
) -> BreakResult:
    """Run a student's tests on all targets, each time in a new worker, and judge them.

    Args:
        problem: whose tests they are.
        tests: the student's file.
        all_targets: what to test.
        boundary: behind which both run; it was made with the job.

    Raises:
        InternalError: something on this machine ended a worker.
    """
    budget, rng = boundary.budget(), random.SystemRandom()

    def run(source: bytes, without: Sequence[str], first: Sequence[str]) -> list[OwnTest]:
        data = job_data(tests, without, first)
        try:
            return boundary.run(JOB, shaken(source, rng), data, Report, budget).found()
        except WorkerFailure as failure:
            if failure.status is Status.INTERNAL:
                raise InternalError(str(failure)) from None
            if failure.status is Status.TIMEOUT and not budget.left:
                raise NoEnd(_TOO_SLOW) from None
            raise NoEnd(_SAID.get(failure.status, "Your tests end their own process.")) from None

    result = judge_own_tests(problem, tests, all_targets, run)
    result.tests = {}  # each file was left at the first test that failed, so it says too little
    result.max, result.bonus = BREAK_POINTS, problem.manifest.own_tests.bonus
    return result


_TOO_SLOW = "Your tests take too long; they run on many files, one after the other."
_SAID = {
    Status.TIMEOUT: "Your tests do not come to an end.",
    Status.MEMORY: "Your tests need too much memory.",
    Status.BAD_OUTPUT: "How your tests end can't be read.",
}
