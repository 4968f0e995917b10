"""What a student's code is charged for: the time it runs or sleeps, and the reading of answers."""

from __future__ import annotations

import os
import time

import pytest
import torch

from grader.boundary.boundary import Boundary
from grader.boundary.failures import WorkerFailure
from grader.boundary.recorder import SubmissionBudget
from grader.result import Status
from tests.busy import busy_core
from tests.grader.boundary.conftest import CalledFile
from tests.lent import lent_boundary

SLOW = """
import time

def softmax(x):
    start = time.process_time()
    while time.process_time() < start + 0.3:
        pass
    return x.softmax(-1)
"""


@pytest.mark.slow
def test_slow_but_right_code_is_not_ended_on_a_busy_machine(origin):
    """It takes 1.5 seconds where it would have taken 0.3, and one is allowed."""
    x, cores = torch.randn(3, 4), os.sched_getaffinity(0)
    with lent_boundary(origin, call_seconds=1.0) as boundary, busy_core(4) as core:
        boundary.stay_on(core)
        try:
            budget = boundary.budget()
            problem = CalledFile(boundary, SLOW, budget=budget)
            before = budget.left
            assert torch.equal(problem.softmax(x), x.softmax(-1))
            assert before - budget.left < 1
        finally:
            os.sched_setaffinity(0, cores)


SLEEPS = """
import threading, time
def f(): time.sleep(1000)
def g(): threading.Semaphore(0).acquire()
"""


@pytest.mark.slow
def test_sleeping_is_charged(sandbox):
    sleeps_at_its_own_cost(sandbox)


@pytest.mark.slow
def test_sleeping_is_charged_without_a_sandbox():
    with Boundary("process") as boundary:
        sleeps_at_its_own_cost(boundary)


def sleeps_at_its_own_cost(boundary):
    budget = SubmissionBudget(0.5, 100)
    problem = CalledFile(boundary, SLEEPS, budget=budget)
    for function in (problem.f, problem.g):
        before = budget.left
        with pytest.raises(WorkerFailure, match="did not come to an end") as caught:
            function()
        assert caught.value.status is Status.TIMEOUT
        assert 0.4 < before - budget.left < 60


@pytest.mark.slow
def test_threads_that_compute_are_charged_and_their_number_is_not():
    """Where there are threads: a call is charged for its longest one."""
    with Boundary("process", call_seconds=60) as boundary:
        budget = SubmissionBudget(20, 100)
        problem = CalledFile(
            boundary,
            "import threading, time\n"
            "def spin(seconds):\n"
            "    start = time.thread_time()\n"
            "    while time.thread_time() < start + seconds: pass\n"
            "def f():\n"
            "    threads = [threading.Thread(target=spin, args=(0.4,)) for _ in range(3)]\n"
            "    for t in threads: t.start()\n"
            "    for t in threads: t.join()\n",
            budget=budget,
        )
        before = budget.left
        problem.f()
        assert before - budget.left > 0.3


def test_reading_an_answer_is_charged(sandbox):
    """A hundred thousand small values are quickly sent and slowly read."""
    budget = sandbox.budget()
    problem = sandbox.open(b"def f(): return [[0]] * 90_000", budget=budget)
    left, before = budget.left, time.thread_time()
    for _ in range(10):
        problem.f()
    # The last tenth of a second was not looked at yet.
    assert left - budget.left > 0.8 * (time.thread_time() - before) - 0.1
    problem.close()
