"""The one way in which a test is run and judged, for students and graders alike."""

from __future__ import annotations

import hashlib
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from grader.code.forbidden import Guard
from grader.code.interrupt import time_limit
from grader.code.loading import not_for_a_student
from grader.code.time_limit import TIMEOUT_SECONDS, Stopwatch
from grader.errors import CannotLoad
from grader.result import Status, TestResult
from grader.run.records import CollectedTest
from grader.run.rng import rng_for
from grader.run.session import Session
from grader.run.verdict import Verdict, judge, leaves_debugger, only_inspected

_TIMEOUTS_BEFORE_GIVING_UP = 2
"""After so many endless tests of a problem its other tests are not run any more."""

_LITTLE = 0.01
"""Seconds that may count in a test's time limit though they passed before."""


@dataclass(frozen=True)
class Outcome:
    """How a test ended.

    Attributes:
        result: the verdict on it.
        exception: what it raised, if anything.
    """

    result: TestResult
    exception: BaseException | None


def run_test(
    test: CollectedTest,
    session: Session,
    timeout: float = TIMEOUT_SECONDS,
    printed: Callable[[], str] = str,
) -> Outcome:
    """Run a test, judge it, and have the session keep the result.

    Args:
        test: what to run.
        session: whose code is tested, and where the result goes.
        timeout: seconds that the test may run.
        printed: returns what the test has printed, where that is kept.

    Raises:
        KeyboardInterrupt: the user ended it.
        BdbQuit: the user left the debugger; or pytest's exception for that.
    """
    session.on_start(test.problem.id, test.id)
    guard = Guard(test.forbidden if session.watch else (), not_for_a_student)
    exception, seconds = _call(test, session, guard, timeout)
    try:
        if exception is not None:
            session.on_exception(test.id, exception)
        verdict = judge(exception, guard, remote=not session.watch)
        verdict = only_inspected(verdict) if test.inspection_only else verdict
        result = _result(test, verdict, seconds)
        session.printed[test.problem.id][test.id] = printed()
        if verdict.shown is not None:
            session.shown[test.problem.id][test.id] = verdict.shown
        session.add(test, result)
        return Outcome(result, exception)
    finally:
        # Its traceback leads back to this frame. In such a circle all that the test was answered,
        # up to 256 MB, would wait for the collector of garbage, which counts things and not bytes.
        del exception


def _result(test: CollectedTest, verdict: Verdict, seconds: float) -> TestResult:
    return TestResult(
        id=test.id,
        title=test.title,
        hidden=test.hidden,
        max=test.points,
        status=verdict.status,
        message=verdict.message,
        seconds=round(seconds, 4),
    )


def _call(
    test: CollectedTest, session: Session, guard: Guard, timeout: float
) -> tuple[BaseException | None, float]:
    """Return what a test raised, if anything, and how long it took."""
    start, stopwatch = time.perf_counter(), Stopwatch()
    try:
        # Code that leaves gradients switched off must not reach the next test with it.
        with warnings.catch_warnings(), torch.enable_grad():
            _seed_global_state(test, session)
            arguments = _arguments(test, session)
            _give_up_after_timeouts(test, session)
            # A file may set another one for all code; it is graded without.
            torch.set_default_dtype(torch.float32)
            if time.perf_counter() - start > _LITTLE:
                stopwatch.restart()
            start = time.perf_counter()
            with time_limit(timeout, stopwatch), guard:
                test.function(**arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as exception:  # student code may raise SystemExit or worse
        if session.debugger and leaves_debugger(exception):
            raise
        return exception, time.perf_counter() - start
    return None, time.perf_counter() - start


def _give_up_after_timeouts(test: CollectedTest, session: Session) -> None:
    if session.timeouts[test.problem.id] >= _TIMEOUTS_BEFORE_GIVING_UP:
        raise CannotLoad(
            Status.TIMEOUT, "Not run: two tests before this one did not come to an end."
        )


def _seed_global_state(test: CollectedTest, session: Session) -> None:
    """Give the test a global random state of its own."""
    seed = _seed(test, session, "global random state")
    random.seed(seed)
    torch.default_generator.manual_seed(seed)  # the CPU's only: quicker by a millisecond


def _arguments(test: CollectedTest, session: Session) -> dict[str, Any]:
    """Return what a test is called with."""
    values = dict(test.case)
    for name in test.fixtures:
        match name:
            case "problem":
                values[name] = session.open_problem(test.problem, test.forbidden)
            case "solution":
                values[name] = test.tests.solution
            case "rng":
                values[name] = rng_for(test.tests.values, _seed(test, session, "rng"))
    return values


def _seed(test: CollectedTest, session: Session, purpose: str) -> int:
    """Return a number that depends on the run's seed, the test, the purpose and the salt.

    Student code can read the global random state. Without the salt it cannot compute from that
    which test is running or what the test has drawn.
    """
    digest = hashlib.sha256(test.tests.salt)
    digest.update(f"{session.seed}/{test.id}/{purpose}".encode())
    return int.from_bytes(digest.digest()[:6], "big")


def load_late_parts() -> None:
    """Use what torch loads only when it is used, before the first test's clock runs."""
    with Guard(("softmax",)):
        x = torch.ones(2, requires_grad=True)
        torch.autograd.grad((x * 2).sum(), x)
