"""Starts interpreters that know nothing of this process: the origin of all that runs student code.

This module does without torch, so that a command can start one that has it and do without itself.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

START_SECONDS = 120.0
"""How long a fresh interpreter may take to load torch, on a busy machine."""

# What a fresh interpreter runs. It is told what to do on its standard input, not by arguments,
# which student code could read. The course is on its path only while its few modules are imported.
BOOT = """
import base64, gc, json, os, socket, sys
gc.disable()  # while torch is loaded, which makes no garbage
config = json.loads(sys.stdin.buffer.readline())
sys.path[:0] = [config["root"], *config["wanted"]]
from grader.boundary.{module} import main
sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != config["root"]]
sys.path += [entry for entry in config["wanted"] if entry not in sys.path]
if "fd" in config:
    channel = socket.socket(fileno=config["fd"])
else:
    channel = socket.fromshare(base64.b64decode(config["share"]))
"""


def boot(
    program: str,
    channel: socket.socket,
    config: dict[str, Any],
    *,
    descriptors: Sequence[int] = (),
    quiet: bool = True,
) -> subprocess.Popen[bytes]:
    """Start an interpreter with nothing but the given program, and hand it the channel.

    Args:
        program: `BOOT` for some module, and what comes then.
        channel: is closed here.
        config: what the program reads, besides where the grader and the libraries are.
        descriptors: what else to hand over; not on Windows.
        quiet: whether it prints nothing, and ignores warnings.
    """
    on_windows = sys.platform == "win32"
    process = subprocess.Popen(
        [sys.executable, "-I", *_warnings(quiet), "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL if quiet else None,
        env=_environment(),
        pass_fds=() if on_windows else (channel.fileno(), *descriptors),
        start_new_session=not on_windows,
    )
    config = config | {"root": str(ROOT), "wanted": library_folders()}
    if sys.platform == "win32":
        config["share"] = base64.b64encode(channel.share(process.pid)).decode()
    else:
        config["fd"] = channel.fileno()
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as stdin:
        stdin.write(json.dumps(config).encode() + b"\n")
    channel.close()
    return process


def _warnings(quiet: bool) -> list[str]:
    return ["-W", "ignore"] if quiet else [f"-W{option}" for option in sys.warnoptions]


def _environment() -> dict[str, str]:
    """Return the only variables that the other side starts with."""
    # Arenas of the C library and threads of OpenMP would count against the limit of memory.
    fixed = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "CUDA_VISIBLE_DEVICES": ""}
    # Memory comes in large pages, where the system has such (glibc 2.35 or later): half of what a
    # worker makes the system do else is to provide small ones, for tensors.
    fixed["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
    return fixed | {name: os.environ[name] for name in kept if name in os.environ}


def library_folders() -> list[str]:
    """Return the folders that hold the libraries which both sides need.

    They come in the order in which this process looks through them: another one may have a torch of
    another version, where one environment stands on another.
    """
    found = (find_spec(name) for name in ("torch", "numpy", "msgspec"))
    origins = (spec.origin for spec in found if spec is not None and spec.origin)
    folders = {str(Path(origin).resolve().parents[1]) for origin in origins}
    order = [entry for entry in map(_resolved, sys.path) if entry in folders]
    return [*dict.fromkeys(order), *sorted(folders.difference(order))]


def _resolved(entry: str) -> str:
    return str(Path(entry).resolve())


def secret_paths() -> list[str]:
    """Return what a worker must not read, wherever Python's own folders may lie."""
    # A virtual environment may lie in the course's folder, so not the whole folder is named.
    names = ("problems", "solutions", "tests", "examples", "docs", "grader", ".git")
    return [str(ROOT / name) for name in names]


def end_with_parent() -> None:
    """Let this process end with the one that started it, even if that is killed; on Linux only."""
    if sys.platform == "linux":
        from grader.boundary.sandbox.libc import die_with

        die_with(os.getppid())


def message_pair() -> tuple[socket.socket, socket.socket]:
    """Return a connection that keeps messages apart; on Linux."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def wait_or_kill(process: subprocess.Popen[bytes], seconds: float = 5.0) -> None:
    """Wait until a process ends by itself; kill it if it doesn't."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
