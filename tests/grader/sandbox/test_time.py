"""Time in which student code runs or sleeps counts; waiting for a processor does not count."""

from __future__ import annotations

import os

import pytest

from grader.result import Status
from grader.sandbox.failures import WorkerFailure
from grader.sandbox.recorder import SubmissionBudget
from grader.sandbox.sandbox import Sandbox
from tests.busy import busy_core
from tests.grader.sandbox.asking import Asked
from tests.lent import lent_sandbox

SLOW = """
import time

def softmax(x):
    start = time.process_time()
    while time.process_time() < start + 0.3:
        pass
    return x.softmax(-1)
"""


@pytest.mark.slow
def test_slow_correct_code_is_not_stopped_on_a_busy_machine(origin):
    """The code takes 1.5 seconds of wall time, but only 0.3 seconds of CPU time. The limit is one
    second.
    """
    cores, call = os.sched_getaffinity(0), "problem.softmax(torch.zeros(2)).tolist()"
    with lent_sandbox(origin, call_seconds=1.0) as sandbox, busy_core(4) as core:
        sandbox.pin_to_core(core)
        try:
            budget = sandbox.budget()
            with Asked(sandbox, SLOW, call, budget=budget) as asked:
                before = budget.left
                assert asked.next() == [0.5, 0.5]
                assert before - budget.left < 1
        finally:
            os.sched_setaffinity(0, cores)


SLEEPS = """
import threading, time
def f(): time.sleep(1000)
def g(): threading.Semaphore(0).acquire()
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", ["sandbox", "process"])
def test_sleeping_is_charged(level):
    budget = SubmissionBudget(0.5, 100)
    with Sandbox(level) as sandbox:
        for call in ("problem.f()", "problem.g()"):
            with Asked(sandbox, SLEEPS, call, budget=budget) as asked:
                before = budget.left
                with pytest.raises(WorkerFailure, match="did not finish in time") as caught:
                    asked.next()
            assert caught.value.status is Status.TIMEOUT
            assert 0.4 < before - budget.left < 60


THREADS = """
import threading, time
def spin(seconds):
    start = time.thread_time()
    while time.thread_time() < start + seconds: pass
def f():
    threads = [threading.Thread(target=spin, args=(0.4,)) for _ in range(3)]
    for t in threads: t.start()
    for t in threads: t.join()
"""


@pytest.mark.slow
def test_a_call_is_charged_for_its_longest_thread():
    """If a call starts several threads, the CPU time of the longest thread counts, not the sum."""
    budget = SubmissionBudget(20, 100)
    with (
        Sandbox("process", call_seconds=60) as sandbox,
        Asked(sandbox, THREADS, "problem.f()", budget=budget) as asked,
    ):
        before = budget.left
        assert asked.next() is None
        assert before - budget.left > 0.3
