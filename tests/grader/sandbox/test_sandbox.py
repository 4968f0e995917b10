"""Each layer of the sandbox stops attacks, for root and for an ordinary user.

The attacks run in short-lived interpreters without torch, one for each layer.
"""

import json
import os
import platform
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from grader.sandbox import selftest
from grader.sandbox.libc import keep_access_times
from tests.processes import NOBODY, python_for_others

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

ROOT = Path(__file__).resolve().parents[3]

# This program applies one layer, then tries every attack, each in a separate process.
SCRIPT = """
import json, os, sys
layer, other, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3]
sys.path.insert(0, ROOT)
from grader.sandbox import confine, landlock, libc, seccomp
import resource, signal, socket, threading, fcntl, ctypes, encodings.idna
if other:
    os.setgroups([]); os.setresgid(other, other, other); os.setresuid(other, other, other)

def apply_layer():
    paths = landlock.readable_paths([ROOT])
    if layer == "limits":
        confine.limit_resources(1 << 28, 30, private_uid=False)
    elif layer == "files":
        libc.gain_no_privileges()
        landlock.restrict_files(paths)
    elif layer == "calls":
        libc.gain_no_privileges()
        seccomp.restrict_calls()
    elif layer == "all":
        uid = confine.pick_uid(os.getpid()) if os.geteuid() == 0 else None
        confine.confine(1 << 28, 30, uid, paths, os.getppid())

def outcome(name):
    # The outcome is sent through a pipe, because the attack may end the process.
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            apply_layer()
            scope = {}
            exec(ATTACKS, scope)
            os.write(writer, b"start ")
            target = folder if name == "list_a_folder" else folder + "/secret.txt"
            os.write(writer, b"succeeded" if scope[name](target) else b"stopped")
        except BaseException as error:
            os.write(writer, repr(error).encode()[:200])
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    text = os.read(reader, 300).decode()
    os.close(reader)
    # A program that was run instead, or a second process, also means success.
    return "succeeded" if text == "start " or "succeeded" in text else text.removeprefix("start ")

print(json.dumps({name: outcome(name) for name in NAMES}))
"""

FILES = {
    "read_a_file",
    "list_a_folder",
    "write_a_file",
    "remove_a_file",
    "read_another_process",
    "run_a_program",
}
CALLS = {
    "remove_a_file",
    "open_a_socket",
    "start_a_process",
    "start_a_thread",
    "run_a_program",
    "signal_the_parent",
    "signal_everybody",
    "direct_signals_of_a_file",
    "trace_the_parent",
    "make_a_namespace",
    "make_a_file_in_memory",
    "become_root",
}
LIMITS = {"use_all_memory"}


def attack(layer, user, tmp_path):
    """Return the outcome of each attack in a process with one layer of the sandbox."""
    if os.geteuid() != 0:
        user = 0  # this process already runs as an ordinary user
    folder = tmp_path / "target"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (folder / "secret.txt").write_text("secret")
    (folder / "secret.txt").chmod(0o666)
    for parent in folder.parents:
        if parent.owner() != "root" or str(parent).startswith("/tmp/"):
            parent.chmod(parent.stat().st_mode | 0o711)
    header = f"ROOT = {str(ROOT)!r}\nATTACKS = {selftest._ATTACKS!r}\nNAMES = {selftest._NAMES!r}\n"
    run = subprocess.run(
        [python_for_others() if user else sys.executable, "-I", "-c", header + SCRIPT]
        + [layer, str(user), str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(run.stdout)


users = pytest.mark.parametrize("user", [0, NOBODY], ids=["own user", "nobody"])


def stopped(outcomes):
    return {name for name, outcome in outcomes.items() if outcome == "stopped"}


@pytest.mark.slow
@users
@pytest.mark.parametrize(
    ("layer", "stops", "works"),
    [("files", FILES, "start_a_process"), ("calls", CALLS, "read_a_file"), ("limits", LIMITS, "")],
)
def test_each_layer_alone(user, tmp_path, layer, stops, works):
    outcomes = attack(layer, user, tmp_path)
    assert stopped(outcomes) >= stops
    assert not works or outcomes[works] == "succeeded"


@pytest.mark.slow
@users
def test_all_layers_together(user, tmp_path):
    outcomes = attack("all", user, tmp_path)
    assert stopped(outcomes) == outcomes.keys()


@pytest.mark.slow
@users
def test_without_layers_the_attacks_work(user, tmp_path):
    """Without layers, the attacks succeed. So the other tests show that the layers stop them."""
    outcomes = attack("none", user, tmp_path)
    # Some attacks need rights, some succeed only once, and some fail in a container.
    rights = {"trace_the_parent", "make_a_namespace", "become_root", "open_a_socket"}
    others = {"remove_a_file", "read_another_process", "signal_the_parent", "signal_everybody"}
    work = {name for name, outcome in outcomes.items() if outcome == "succeeded"}
    assert work >= (FILES | CALLS) - rights - others


def test_attacks_on_a_real_worker(sandbox):
    assert selftest.attack(sandbox._workers) == []


MORE = {
    "the course by import": "__import__('grader.run.compare')",
    "a solution by path": f"open({str(ROOT / 'solutions/01-softmax/problem.py')!r}).read()",
    "a named pipe": "__import__('os').mkfifo('/tmp/pipe')",
    "the clock": "__import__('time').clock_settime(0, 0)",
    "many files": "[open('/dev/null') for _ in range(100)]",
}


@pytest.mark.parametrize("name", MORE)
def test_more_attacks_on_a_real_worker(ask, name):
    raised = ask(f"def f():\n    {MORE[name]}\n    return 'succeeded'", "problem.f()")
    assert raised[0] in ("PermissionError", "OSError", "ModuleNotFoundError")


def own_mounts_work():
    """Return whether a process on this machine can switch off the recording of access times."""
    child = os.fork()
    if child == 0:
        os._exit(0 if keep_access_times() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def is_read_at(path, read):
    """Call `read` with a path, and return whether the file's access time has changed."""
    os.utime(path, ns=(10**18, os.stat(path).st_mtime_ns))
    assert read(str(path))
    return os.stat(path).st_atime_ns != 10**18


def test_reading_leaves_no_access_times(ask):
    """A worker could use the access times of files to pass data to a later worker."""
    path = Path(torch.__file__).parent / "testing" / "_creation.py"
    if not own_mounts_work() or not is_read_at(path, lambda name: Path(name).read_bytes()):
        pytest.skip("mounts can't be changed here, or reading never changes access times")
    source = "def read(path):\n    with open(path, 'rb') as file: return len(file.read())"
    assert not is_read_at(path, lambda name: ask(source, f"problem.read({name!r})") > 0)


def test_torch_works_without_threads(ask):
    """Correct code may request several threads. It runs with one thread."""
    gradient, thread = ask(
        """
        import threading, torch
        torch.set_num_threads(4)
        def thread(): threading.Thread(target=print).start()
        def several():
            torch.set_num_threads(2)
            torch.set_num_interop_threads(2)
            x = torch.randn(300, 300, requires_grad=True)
            y = x.mm(x).exp().sum(0) + torch.nn.functional.conv1d(x[None], x[None])
            y.sum().backward()
            return list(x.grad.shape)
        """,
        "problem.several()",
        "problem.thread()",
    )
    assert gradient == [300, 300]
    assert thread == ("RuntimeError", "can't start new thread")


def test_modules_of_the_worker_cannot_be_imported(ask):
    """An assignment in such a module could forge the worker's messages."""
    source = """
        import sys
        def found():
            names = [name for name in sys.modules if name.partition(".")[0] == "grader"]
            names += [name for name in vars(sys.modules["__main__"]) if name[:2] != "__"]
            try:
                import grader
                names.append("import")
            except ImportError:
                pass
            return names
        """
    assert ask(source, "problem.found()") == []


def test_the_filter_supports_this_machine():
    from grader.sandbox import confine, seccomp

    if platform.machine() in ("x86_64", "aarch64"):
        assert confine.missing() == ""
    for machine in seccomp._MACHINES.values():
        program = seccomp._program(machine)
        assert len(program) < 4096
        assert len(set(machine.numbers.values())) == len(machine.numbers)


def test_a_low_limit_of_the_shell_is_reported(monkeypatch):
    from grader.sandbox import confine

    def refuse(number, limits):
        raise ValueError("not allowed to raise maximum limit")

    monkeypatch.setattr(resource, "setrlimit", refuse)
    with pytest.raises(OSError, match="ulimit -Ha"):
        confine.limit_resources(1 << 28, 30, private_uid=False)
