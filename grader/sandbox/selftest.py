"""Attack a worker of the sandbox, before any worker runs student code."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from grader.errors import CannotLoad
from grader.sandbox.recorder import Recorder, SubmissionBudget
from grader.sandbox.spawn import Workers

_SECONDS = 20.0

# Each function returns text if its attack succeeded, and an empty string otherwise.
_ATTACKS = """
import ctypes, os, resource, signal, socket, sys, threading

def tried(action):
    try:
        return str(action() or "done")
    except (OSError, RuntimeError, ValueError, MemoryError, OverflowError):
        return ""

def read_a_file(path):
    return tried(lambda: open(path, "rb").read(1))

def list_a_folder(path):
    return tried(lambda: os.listdir(path))

def write_a_file(path):
    return tried(lambda: open(path, "w").write("x"))

def remove_a_file(path):
    return tried(lambda: os.unlink(path))

def read_another_process(path):
    return tried(lambda: open(f"/proc/{os.getppid()}/cmdline").read())

def see_the_environment(path):
    return " ".join(os.environ)

def open_a_socket(path):
    kinds = [(socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM),
             (socket.AF_UNIX, socket.SOCK_STREAM), (16, socket.SOCK_RAW)]
    return "".join(tried(lambda: socket.socket(*kind)) for kind in kinds)

def start_a_process(path):
    return tried(os.fork)

def start_a_thread(path):
    return tried(threading.Thread(target=int).start)

def run_a_program(path):
    return tried(lambda: os.execv("/bin/true", ["true"]))

def signal_the_parent(path):
    return tried(lambda: os.kill(os.getppid(), 0) or "reached")

def signal_everybody(path):
    return tried(lambda: os.kill(-1, 0) or "reached")

def direct_signals_of_a_file(path):
    import fcntl
    return tried(lambda: fcntl.fcntl(3, fcntl.F_SETOWN, os.getppid()) or "set")

def trace_the_parent(path):
    libc = ctypes.CDLL(None, use_errno=True)
    return "traced" if libc.ptrace(0x4206, os.getppid(), 0, 0) == 0 else ""

def make_a_namespace(path):
    libc = ctypes.CDLL(None, use_errno=True)
    return "made" if libc.unshare(0x10000000) == 0 else ""

def make_a_file_in_memory(path):
    return tried(lambda: os.memfd_create("x"))

def raise_a_limit(path):
    huge = resource.RLIM_INFINITY
    return tried(lambda: resource.setrlimit(resource.RLIMIT_AS, (huge, huge)))

def use_all_memory(path):
    return tried(lambda: bytearray(1 << 40) and "had")

def become_root(path):
    return tried(lambda: os.setuid(0))
"""

_NAMES = [line[4 : line.index("(")] for line in _ATTACKS.splitlines() if line.endswith("(path):")]


def attack(workers: Workers) -> list[str]:
    """Attack a worker, and return the names of the attacks that succeeded.

    The list is empty if the sandbox is effective. If the worker fails, the list contains only the
    message of its failure.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        secret = Path(folder) / "secret.txt"
        secret.write_text("secret")
        secret.chmod(0o666)
        try:
            return _attack(workers, secret)
        except CannotLoad as failure:
            return [str(failure)]


def _attack(workers: Workers, secret: Path) -> list[str]:
    source, targets = _ATTACKS.encode(), dict.fromkeys(_NAMES, str(secret))
    targets["list_a_folder"] = str(secret.parent)
    order = json.dumps([*targets.items()]).encode()
    settings = {"forbidden": (), "capture": False}
    process = workers.spawn(None, (), source)
    recorder = Recorder(process, SubmissionBudget(_SECONDS, _SECONDS), settings, source, order)
    try:
        return [name.replace("_", " ") for name in targets if json.loads(recorder.receive()[0])]
    finally:
        recorder.close()
