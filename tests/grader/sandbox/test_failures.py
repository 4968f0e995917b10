"""A worker is replaced if its code hangs, crashes or sends invalid messages."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from grader.result import Status
from grader.sandbox.failures import WorkerFailure
from grader.sandbox.recorder import SubmissionBudget
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import SandboxError
from tests.grader.sandbox.asking import Asked
from tests.lent import lent_sandbox
from tests.processes import is_running, wait_until_gone

# Each statement ends or blocks the worker, or sends an invalid message.
DEADLY = {
    "os._exit": ("os._exit(0)", Status.CRASH, "exit status 0"),
    "abort": ("os.abort()", Status.CRASH, r"SIGABRT\). Does it need .* memory"),
    "segfault": ("ctypes.string_at(0)", Status.CRASH, "SIGSEGV"),
    "interrupt": ("signal.raise_signal(15)", Status.CRASH, "SIGTERM"),
    "time": ("signal.raise_signal(24)", Status.CRASH, "SIGXCPU"),
    "closed": ("os.close(3)", Status.CRASH, "Your code"),
    "garbage": ("os.write(3, b'x' * 999)", Status.BAD_OUTPUT, "can't be read"),
    "huge frame": ("os.write(3, b'\\xff' * 8)", Status.BAD_OUTPUT, "can't be read"),
    "large frame": ("os.write(3, b'\\0\\0\\0\\3' + bytes(1 << 16))", Status.BAD_OUTPUT, "can't"),
}  # fmt: skip
ENDLESS = "def f():\n    while True: pass"


def failure_in(asked):
    """Check that the next expression makes the worker fail, and return the failure."""
    with pytest.raises(WorkerFailure) as caught:
        asked.next()
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("name", DEADLY)
def test_a_crashed_worker_is_replaced(sandbox, ask, name):
    action, status, message = DEADLY[name]
    source = f"import ctypes, os, signal\ndef f(): {action}"
    with Asked(sandbox, source, "problem.f()", "1", "2") as asked:
        with pytest.raises(WorkerFailure, match=message) as caught:
            asked.next()
        assert caught.value.status is status
    assert ask(source, "1 + 1") == 2


@pytest.mark.slow
def test_files_of_a_submission_share_its_time_limit(sandbox, ask):
    budget = SubmissionBudget(1.0, 1.8)
    for _ in range(2):
        with Asked(sandbox, ENDLESS, "problem.f()", budget=budget) as asked:
            assert "did not finish in time" in str(failure_in(asked))
    assert budget.left == 0
    with pytest.raises(WorkerFailure, match="the time for this submission is used up"):
        Asked(sandbox, ENDLESS, budget=budget)
    assert ask(ENDLESS, "1") == 1


TRICKLE = """
import os, time
def f():
    os.write(3, (1 << 16).to_bytes(4, "little"))
    while True:
        os.write(3, b"x")
        time.sleep(0.02)
"""


@pytest.mark.slow
def test_a_slowly_sent_answer_does_not_extend_the_time(sandbox):
    budget = SubmissionBudget(0.5, 100)
    with Asked(sandbox, TRICKLE, "problem.f()", budget=budget) as asked:
        assert failure_in(asked).status is Status.TIMEOUT


@pytest.mark.slow
def test_an_interrupted_question_ends_its_worker(sandbox):
    """A late answer of the worker could be read as the answer to the next expression."""

    def interrupt(*_):
        raise KeyboardInterrupt

    sleeps = "__import__('time').sleep(5)"
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Asked(sandbox, "", "__import__('os').getpid()", sleeps) as asked:
            pid = asked.next()
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(KeyboardInterrupt):
                asked.next()
            assert not is_running(pid)
    finally:
        signal.signal(signal.SIGALRM, before)


GRADER = """
import sys
from grader.sandbox.sandbox import Sandbox
from tests.grader.sandbox.asking import Asked

SOURCE = "import os\\ndef pids(): return [os.getpid(), os.getppid()]"
with Sandbox(sys.argv[1], call_seconds=100) as sandbox:
    with Asked(sandbox, SOURCE, "problem.pids()", "any(iter(int, 1))") as asked:
        print(*asked.next(), flush=True)
        asked.next()
"""
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(sys.platform != "linux", reason="the test reads /proc")
@pytest.mark.parametrize("level", ["sandbox", "process"])
@pytest.mark.slow
def test_no_process_outlives_a_killed_grader(level):
    """A worker ends even if it is busy and doesn't read from its connection."""
    command = [sys.executable, "-c", GRADER, level]
    grader = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    pids = {int(pid) for pid in grader.stdout.readline().split()}
    assert len(pids) == 2
    grader.kill()
    grader.wait()
    grader.stdout.close()
    wait_until_gone(pids, 10)


def test_the_level_sandbox_is_refused_on_a_machine_without_one(monkeypatch):
    monkeypatch.setattr("grader.sandbox.sandbox._missing", lambda: "no such thing here")
    with pytest.raises(SandboxError, match="no such thing here"), Sandbox():
        pass


@pytest.mark.slow
def test_a_hole_found_by_the_self_test_stops_the_sandbox(monkeypatch, origin):
    monkeypatch.setattr("grader.sandbox.sandbox.attack", lambda workers: ["open a socket"])
    with pytest.raises(SandboxError, match="open a socket"), lent_sandbox(origin):
        pass


@pytest.mark.slow
def test_a_worker_killed_by_the_system_is_no_student_error(sandbox, ask):
    """If memory runs out, the system may kill a worker. This is not an error of the student."""
    expressions = ("__import__('os').getpid()", "__import__('time').sleep(60)")
    with Asked(sandbox, "", *expressions) as asked:
        killer = threading.Timer(0.3, os.kill, (asked.next(), signal.SIGKILL))
        killer.start()
        failure = failure_in(asked)
        killer.join()
    assert failure.status is Status.INTERNAL
    assert "killed" in str(failure)
    assert ask("", "1") == 1


KILLS = {
    "signal.raise_signal": "signal.raise_signal(signal.SIGKILL)",
    "os.kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "pthread_kill": "signal.pthread_kill(threading.get_ident(), signal.SIGKILL)",
    "tgkill": "libc.syscall(234, os.getpid(), os.getpid(), 9)",
    "high bits": "libc.syscall(234, os.getpid(), os.getpid(), ctypes.c_long((1 << 32) + 9))",
    "limit": "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n    while True: pass",
}


@pytest.mark.parametrize("name", KILLS)
def test_code_cannot_imitate_a_kill_by_the_system(sandbox, name):
    """If code could send itself SIGKILL, the grader would assume an error of the machine."""
    source = (
        "import ctypes, os, resource, signal, threading\nlibc = ctypes.CDLL(None)\n"
        f"def f():\n    {KILLS[name]}\n    return 'survived'"
    )
    with Asked(sandbox, source, "problem.f()") as asked:
        assert outcome(asked) in (
            *(Status.TIMEOUT, Status.CRASH, "survived"),
            *("PermissionError", "OSError", "ValueError"),
        )


def outcome(asked):
    """Return the next expression's value, its exception's name, or the worker's status."""
    try:
        found = asked.next()
    except WorkerFailure as failure:
        return failure.status
    return found if isinstance(found, str) else found.type


@pytest.mark.slow
def test_code_that_exceeds_its_cpu_time_is_a_timeout(origin):
    """The code ignores SIGXCPU, so the kernel kills it. The status is still a timeout."""
    source = "import signal\nsignal.signal(24, signal.SIG_IGN)\n" + ENDLESS
    budget = SubmissionBudget(60, 60)
    with (
        lent_sandbox(origin, submission_seconds=1) as sandbox,
        Asked(sandbox, source, "problem.f()", budget=budget) as asked,
    ):
        failure = failure_in(asked)
    assert failure.status is Status.TIMEOUT
    assert "CPU time" in str(failure)
