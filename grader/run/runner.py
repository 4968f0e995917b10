"""Run and judge a test in the same way at home and in grading."""

from __future__ import annotations

import functools
import hashlib
import random
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from grader.code.forbidden import Guard
from grader.code.loading import no_caller_is_student
from grader.code.time_limit import TIMEOUT_SECONDS, Stopwatch, time_limit
from grader.errors import CannotLoad
from grader.result import Status, TestResult
from grader.run.collecting import CollectedTest
from grader.run.rng import rng_for
from grader.run.session import Session
from grader.run.verdict import Verdict, judge, leaves_debugger, only_inspected

MOST_TIMEOUTS = 2
"""After this number of timeouts, the remaining tests of a problem are not run."""

GIVEN_UP = "Not run: two earlier tests did not finish in time."
"""The message for tests that are not run because of earlier timeouts."""

_SHORT_PREPARATION = 0.01
"""If preparing a test takes more seconds than this, its time limit starts afterwards."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a test.

    Attributes:
        result: the result with the verdict.
        exception: the exception that the test raised, if any.
    """

    result: TestResult
    exception: BaseException | None


def run_test(
    test: CollectedTest,
    session: Session,
    timeout: float = TIMEOUT_SECONDS,
    printed: Callable[[], str] = str,
) -> Outcome:
    """Run a test, judge it, and add the result to the session.

    Args:
        test: the test to run.
        session: opens the tested code, and receives the result.
        timeout: the time limit of the test in seconds.
        printed: returns the text that the test printed; by default an empty string.

    Raises:
        KeyboardInterrupt: the user interrupted the test.
        BdbQuit: the user quit a debugger. pytest's debugger raises pytest.exit.Exception instead.
    """
    session.on_start(test.problem.id, test.id)
    guard = Guard(test.forbidden if session.watch else (), no_caller_is_student)
    seeds = seeds_for(test, session.seed)
    exception, seconds = _call(test, session, guard, seeds, timeout)
    try:
        add_result(test, session, judge(exception, guard), seconds, printed())
        return Outcome(session.results[test.problem.id].tests[-1], exception)
    finally:
        # The exception's traceback refers to this frame, so they form a cycle. Without `del`, the
        # cycle would keep the test's values (up to 256 MB) until the next garbage collection.
        del exception


def run_in_worker(
    test: CollectedTest, session: Session, seeds: Seeds, called: list[str] | None
) -> tuple[BaseException | None, Verdict]:
    """Run a test as a worker does, and return the exception that it raised and the verdict.

    Args:
        test: the test to run.
        session: opens the tested code.
        seeds: the seeds of the test's random numbers.
        called: the list that receives the name of the first forbidden function that is called.
            None if this process only acts as a worker. Then this function detects forbidden calls
            and enforces the time limit.
    """
    guard = Guard(test.forbidden if called is None else (), no_caller_is_student)
    timeout = TIMEOUT_SECONDS if called is None else None
    exception, _ = _call(test, session, guard, seeds, timeout)
    try:
        guard.called = called.pop() if called else guard.called
        return exception, judge(exception, guard)
    finally:
        del exception


def add_result(
    test: CollectedTest, session: Session, verdict: Verdict, seconds: float, printed: str = ""
) -> None:
    """Add the result, the printed text and the evidence of a test to the session."""
    if test.inspection_only:
        verdict = only_inspected(verdict)
    session.printed[test.problem.id][test.id] = printed
    if verdict.shown is not None:
        session.shown[test.problem.id][test.id] = verdict.shown
    session.add(test, _result(test, verdict, seconds))


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
    test: CollectedTest, session: Session, guard: Guard, seeds: Seeds, timeout: float | None
) -> tuple[BaseException | None, float]:
    """Run a test. Return the exception that it raised (or None) and the run time in seconds."""
    start, stopwatch = time.perf_counter(), Stopwatch()
    try:
        # Code that switches gradients off must not affect the next test.
        with warnings.catch_warnings(), torch.enable_grad():
            random.seed(seeds.state)
            torch.default_generator.manual_seed(seeds.state)  # torch.manual_seed is slower
            arguments = _arguments(test, session, seeds)
            _give_up_after_timeouts(test, session)
            # A file may change the default dtype, which must not affect tests.
            torch.set_default_dtype(torch.float32)
            if time.perf_counter() - start > _SHORT_PREPARATION:
                stopwatch.restart()
            start = time.perf_counter()
            with _limit(timeout, stopwatch), guard:
                test.function(**arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as exception:  # student code may raise SystemExit or worse
        if session.debugger and leaves_debugger(exception):
            raise
        return exception, time.perf_counter() - start
    return None, time.perf_counter() - start


def _limit(timeout: float | None, stopwatch: Stopwatch) -> AbstractContextManager[None]:
    return nullcontext() if timeout is None else time_limit(timeout, stopwatch)


def _give_up_after_timeouts(test: CollectedTest, session: Session) -> None:
    if session.timeouts[test.problem.id] >= MOST_TIMEOUTS:
        raise CannotLoad(Status.TIMEOUT, GIVEN_UP)


def _arguments(test: CollectedTest, session: Session, seeds: Seeds) -> dict[str, Any]:
    """Return the arguments for a call of the test: the case's parameters and the fixtures."""
    values = dict(test.case)
    for name in test.fixtures:
        match name:
            case "problem":
                values[name] = session.open_problem(test.problem, test.forbidden)
            case "solution":
                values[name] = test.tests.solution
            case "rng":
                values[name] = rng_for(test.tests.values, seeds.rng)
    return values


@dataclass(frozen=True)
class Seeds:
    """The seeds of a test's random numbers.

    Attributes:
        state: the seed of the global generators of Python and torch.
        rng: the seed of the fixture `rng`.
    """

    state: int
    rng: int


def seeds_for(test: CollectedTest, seed: int) -> Seeds:
    """Return the seeds of a test in a run with this seed.

    The seeds also depend on the salt. Student code can read the state of the global generators.
    Without the salt, it could infer from this state which test is running and which inputs it uses.
    """

    def number(purpose: str) -> int:
        digest = hashlib.sha256(test.tests.salt)
        digest.update(f"{seed}/{test.id}/{purpose}".encode())
        return int.from_bytes(digest.digest()[:6], "big")

    return Seeds(number("global random state"), number("rng"))


@functools.cache
def load_late_parts() -> None:
    """Load parts of torch that torch loads at first use, so that no test's time includes this."""
    with Guard(("softmax",)):
        x = torch.ones(2, requires_grad=True)
        torch.autograd.grad((x * 2).sum(), x)
