"""Student code that hangs, dies or lies: the test fails, the run goes on with a new worker."""

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest
import torch

from grader.boundary.boundary import Boundary
from grader.boundary.failures import WorkerFailure
from grader.boundary.recorder import Recorder, SubmissionBudget
from grader.boundary.spawn import ForkedWorkers
from grader.boundary.starting import BoundaryError
from grader.errors import CannotLoad
from grader.result import Status
from tests.grader.boundary.conftest import CalledFile
from tests.lent import lent_boundary, lent_prefork_server
from tests.processes import lives

NOTHING_FORBIDDEN = {"forbidden": (), "capture": False}

# Each of these ends, breaks or blocks the worker in its own way.
DEADLY = {
    "os._exit": ("import os\ndef f(): os._exit(0)", Status.CRASH, "exit status 0"),
    "abort": ("import os\ndef f(): os.abort()", Status.CRASH, r"SIGABRT\). Does it need .* memory"),
    "segfault": ("import ctypes\ndef f(): ctypes.string_at(0)", Status.CRASH, "SIGSEGV"),
    "interrupt": ("import signal\ndef f(): signal.raise_signal(15)", Status.CRASH, "SIGTERM"),
    "time": ("import signal\ndef f(): signal.raise_signal(24)", Status.CRASH, "SIGXCPU"),
    "closed": ("import os\ndef f(): os.close(3)", Status.CRASH, "Your code"),
    "garbage": ("import os\ndef f(): os.write(3, b'x' * 999)", Status.BAD_OUTPUT, "can't be read"),
    "huge frame": (
        "import os\ndef f(): os.write(3, b'\\xff' * 8)",
        Status.BAD_OUTPUT,
        "can't be read",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def impatient(origin):
    with lent_boundary(origin, call_seconds=0.5, memory_mb=256) as boundary:
        yield boundary


@pytest.mark.slow
@pytest.mark.parametrize("name", DEADLY)
def test_a_worker_that_dies_is_replaced(called, name):
    source, status, message = DEADLY[name]
    problem = called(source + "\ndef g(x): return x + 1")
    for _ in range(2):
        with pytest.raises(WorkerFailure, match=message) as caught:
            problem.f()
        assert caught.value.status is status
        assert torch.equal(problem.g(torch.ones(2)), torch.full((2,), 2.0))


@pytest.mark.slow
def test_endless_import_is_ended(opened, impatient):
    sentence = "^problem.py does not come to an end while it is being imported.$"
    with pytest.raises(CannotLoad, match=sentence) as caught:
        opened("while True: pass", boundary=impatient)
    assert caught.value.status is Status.TIMEOUT


@pytest.mark.slow
def test_a_used_up_budget_fails_at_once(impatient):
    budget = SubmissionBudget(0.5, 0.9)
    problem = CalledFile(impatient, "def f():\n    while True: pass", budget=budget)
    for _ in range(2):
        with pytest.raises(WorkerFailure):
            problem.f()
    assert budget.left == 0
    with pytest.raises(WorkerFailure, match="used up"):
        problem.f()


@pytest.mark.slow
def test_the_files_of_a_submission_share_its_time(called, impatient):
    budget = SubmissionBudget(1.0, 1.8)
    for _ in range(2):
        problem = CalledFile(impatient, "def f():\n    while True: pass", budget=budget)
        with pytest.raises(WorkerFailure, match="did not come to an end"):
            problem.f()
    assert budget.left == 0
    with pytest.raises(CannotLoad, match="the time for this submission is used up"):
        CalledFile(impatient, "def f(): return 1", budget=budget).f()
    assert called("def f(): return 1").f() == 1


def test_modules_of_a_dead_worker_fail_and_say_so(opened):
    problem = opened(
        """
        import os
        from torch import nn
        class M(nn.Module):
            def forward(self, x): return x * 2
        def die(): os._exit(1)
        """
    )
    module = problem.M()
    x = torch.ones(1, requires_grad=True)
    result = module(x)
    with pytest.raises(WorkerFailure):
        problem.die()
    with pytest.raises(WorkerFailure, match="The process that held this M has ended"):
        module(x)
    with pytest.raises(WorkerFailure, match="has ended"):
        result.sum().backward()
    assert torch.equal(problem.M()(torch.ones(1)), torch.full((1,), 2.0))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_shared_with_a_dead_worker_goes_at_once(opened):
    """An exception that somebody holds, or a collector that comes late, doesn't keep it."""
    problem = opened("import os\ndef f(): os._exit(0)\ndef g(x): return x + 1")
    gc.disable()
    try:
        before, held = shared_mappings(), []
        for _ in range(4):
            assert torch.equal(problem.g(torch.ones(2)), torch.full((2,), 2.0))
            with pytest.raises(WorkerFailure) as caught:
                problem.f()
            held.append(caught.value)
        assert shared_mappings() < before
    finally:
        gc.enable()


def shared_mappings():
    """Return how many workers' memory this process has mapped."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return sum("memfd:tensors" in line for line in maps)


@pytest.mark.slow
def test_an_interrupted_call_leaves_no_stale_answer(called):
    problem = called("import time\ndef f():\n    time.sleep(5)\n    return 1\ndef g(): return 2")

    def interrupt(*_):
        raise KeyboardInterrupt

    def interrupted():
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        problem.f()

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert problem.g() == 2


def test_hostile_results_are_bad_output_or_harmless(opened):
    problem = opened(
        """
        import torch
        class Equal:
            def __eq__(self, other): return True
            __class__ = float
        class Sub(torch.Tensor):
            @classmethod
            def __torch_function__(cls, *args, **kwargs): raise RuntimeError("hands off")
        def equal(): return Equal()
        def subclass(): return torch.ones(2).as_subclass(Sub)
        def long(): return [0] * 10**7
        """
    )
    assert type(problem.subclass()) is torch.Tensor
    assert not isinstance(outcome(problem.equal), (float, torch.Tensor, list))
    assert outcome(problem.long) is Status.BAD_OUTPUT


def outcome(function):
    """Return what a function returns, or the status that its failure has."""
    try:
        return function()
    except WorkerFailure as failure:
        return failure.status


def test_workers_end_with_the_connection(sandbox):
    order, source = b'[["pid"], ["pid"]]', b"import os\ndef pid(): return os.getpid()"
    recorder = sandbox.record(None, order, source, (), sandbox.budget())
    pid = json.loads(recorder.receive()[0])
    os.kill(pid, 0)
    recorder.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_a_prefork_server_whose_grader_is_gone_ends_without_a_word(sandbox, capfd):
    """Also if an answer was on its way, as when the grader is killed."""
    workers = ForkedWorkers(1 << 28, 60)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        request = json.dumps({"do": "fork", "id": 1}).encode()
        channel = [*workers._servers.values()][0]._channel
        socket.send_fds(channel, [request], [theirs.fileno()])
        assert select.select([channel], [], [], 60)[0]
        workers.close()
    assert capfd.readouterr().err == ""


GRADER = """
import sys
from grader.boundary.boundary import Boundary
with Boundary(sys.argv[1], call_seconds=100) as boundary:
    source = (b"import os\\ndef pids(): return '%d %d' % (os.getpid(), os.getppid())\\n"
              b"def f():\\n    while True: pass")
    recorder = boundary.record(None, b'[["pids"], ["f"]]', source, (), boundary.budget())
    print(recorder.receive()[0].decode().strip('"'), flush=True)
    recorder.receive()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes as Linux shows them")
@pytest.mark.parametrize("level", ["sandbox", "process"])
@pytest.mark.slow
def test_nothing_outlives_a_grader_that_is_killed(level):
    """Not even a worker that is busy and ignores its connection."""
    grader = subprocess.Popen([sys.executable, "-c", GRADER, level], stdout=subprocess.PIPE)
    pids = {int(pid) for pid in grader.stdout.readline().split()}
    assert len(pids) == 2
    grader.kill()
    grader.wait()
    grader.stdout.close()
    deadline = time.monotonic() + 10
    while any(lives(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in pids if lives(pid)]


def test_level_sandbox_is_refused_where_there_is_none(monkeypatch):
    monkeypatch.setattr("grader.boundary.boundary._missing", lambda: "no such thing here")
    with pytest.raises(BoundaryError, match="no such thing here"), Boundary():
        pass


def killed_from_outside(recorder):
    """Have the machine kill a worker in a call, as it does where memory runs out."""
    pid = json.loads(recorder.receive()[0])
    killer = threading.Timer(0.3, os.kill, (pid, signal.SIGKILL))
    killer.start()
    try:
        with pytest.raises(WorkerFailure) as caught:
            recorder.receive()
    finally:
        killer.join()
    return caught.value


@pytest.mark.slow
def test_a_worker_that_something_else_killed_is_nobodys_fault(sandbox):
    source = b"import os, time\ndef pid(): return os.getpid()\ndef sleep(): time.sleep(60)"
    recorder = sandbox.record(None, b'[["pid"], ["sleep"]]', source, (), sandbox.budget())
    failure = killed_from_outside(recorder)
    assert failure.status is Status.INTERNAL
    assert "killed" in str(failure)


KILLS = {
    "signal.raise_signal": "signal.raise_signal(signal.SIGKILL)",
    "os.kill": "os.kill(os.getpid(), signal.SIGKILL)",
    "pthread_kill": "signal.pthread_kill(threading.get_ident(), signal.SIGKILL)",
    "tgkill": "libc.syscall(234, os.getpid(), os.getpid(), 9)",
    "high bits": "libc.syscall(234, os.getpid(), os.getpid(), ctypes.c_long((1 << 32) + 9))",
    "limit": "resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n    while True: pass",
}


@pytest.mark.parametrize("name", KILLS)
def test_no_code_can_look_as_if_something_else_had_killed_it(called, name):
    """SIGKILL would be the machine's fault, and its test would be tried again and again."""
    problem = called(
        "import ctypes, os, resource, signal, threading\nlibc = ctypes.CDLL(None)\n"
        f"def f():\n    {KILLS[name]}\n    return 1"
    )
    with suppress(OSError, ValueError):
        assert outcome(problem.f) in (1, Status.TIMEOUT, Status.CRASH)


@pytest.mark.slow
def test_code_that_uses_up_its_processor_time_is_not_killed_by_something_else(origin):
    """It ignores the kernel's first warning; the second one is SIGKILL."""
    source = b"import signal\nsignal.signal(24, signal.SIG_IGN)\ndef f():\n    while True: pass"
    workers = ForkedWorkers(1 << 28, 1, prefork_server=lent_prefork_server(origin))
    try:
        process, settings = workers.spawn_recording(None, (), source), NOTHING_FORBIDDEN
        recorder = Recorder(process, SubmissionBudget(60, 60), settings, source, b'[["f"]]')
        with pytest.raises(WorkerFailure, match="CPU time") as caught:
            recorder.receive()
        assert caught.value.status is Status.TIMEOUT
    finally:
        workers.close()


def test_a_gradient_without_numbers_is_bad_output(opened):
    """Not an exception in which this side's autograd complains."""
    problem = opened(
        """
        import sys, torch
        def f(x):
            frame = sys._getframe()
            while "Graph" not in frame.f_globals: frame = frame.f_back
            its = frame.f_globals["Graph"].gradients.__globals__
            its["_run_backward"] = lambda *a, **k: [torch.empty(3, device='meta')]
            return x * 2
        """
    )
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(WorkerFailure) as caught:
        problem.f(x).sum().backward()
    assert caught.value.status is Status.BAD_OUTPUT
    assert x.grad is None


META = """
import torch
class Meta(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, upstream): return upstream.to("meta")
def by_function(x): return Meta.apply(x)
def by_hook(x):
    y = x * 2
    y.register_hook(lambda g: g.to("meta"))
    return y
"""


@pytest.mark.parametrize("name", ["by_function", "by_hook"])
def test_gradients_on_the_meta_device_are_bad_output(opened, name):
    x = torch.ones(2, requires_grad=True)
    y = getattr(opened(META), name)(x)
    with pytest.raises(WorkerFailure, match="a gradient on the meta device") as caught:
        y.sum().backward()
    assert caught.value.status is Status.BAD_OUTPUT
