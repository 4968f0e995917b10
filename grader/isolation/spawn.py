"""Spawns the processes that student code runs in. This is the trusted side's half.

Two ways: `ForkedWorkers` asks a fork server for workers, which it forks and confines;
`SpawnedWorkers` starts a fresh interpreter for each, which works everywhere and confines nothing.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy
import torch

from grader.errors import InternalError
from grader.isolation.protocol import Closed, ProtocolError
from grader.isolation.protocol.frames import receive, within
from grader.isolation.protocol.memory import Memory
from grader.isolation.sharing import shared_memory

_ROOT = Path(__file__).resolve().parents[2]

_START_SECONDS = 120.0
"""How long a fresh interpreter may take to load torch, on a busy machine."""

_ASK_SECONDS = 60.0

# What a fresh interpreter runs. It is told what to do on its standard input, not by arguments,
# which student code could read. The course is on its path only while its few modules are imported.
_BOOT = """
import base64, gc, json, os, socket, sys
gc.disable()  # while torch is loaded, which makes no garbage
config = json.loads(sys.stdin.buffer.readline())
sys.path[:0] = [config["root"], *config["wanted"]]
from grader.isolation.{module} import main
sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry or ".") != config["root"]]
sys.path += [entry for entry in config["wanted"] if entry not in sys.path]
if "fd" in config:
    channel = socket.socket(fileno=config["fd"])
else:
    channel = socket.fromshare(base64.b64decode(config["share"]))
"""
# What is left in the main module, student code can read.
_BOOT_FORK_SERVER = _BOOT.format(module="fork_server") + "main(channel, globals().pop('config'))\n"
_BOOT_WORKER = (
    _BOOT.format(module="worker.spawned")
    + """
if sys.platform == "linux":
    from grader.isolation.sandbox.libc import die_with
    die_with(config["parent"])
gc.enable()
main(channel, config.pop("shared"))
"""
)


def end_with_parent() -> None:
    """Let this process end with the one that started it, even if that is killed; on Linux only."""
    if sys.platform == "linux":
        from grader.isolation.sandbox.libc import die_with

        die_with(os.getppid())


class BoundaryError(InternalError):
    """The boundary itself can't do its work: the grader's own fault, never a student's."""


@dataclass(frozen=True)
class Ending:
    """How a worker ended.

    Attributes:
        code: its exit code; -N after signal N.
        killed: whether it was still alive, and was killed from here.
        out_of_time: whether it had used all the processor time that the kernel grants it.
    """

    code: int
    killed: bool = False
    out_of_time: bool = False


class Process(ABC):
    """A worker process.

    Attributes:
        channel: a stream socket to it.
        pid: its id.
        memory: what it shares with this process.
    """

    channel: socket.socket
    pid: int
    memory: Memory

    @abstractmethod
    def end(self, grace: float = 0.0) -> Ending:
        """Kill it, unless it ended already.

        Args:
            grace: seconds that it has to end by itself; it closes its files a little before.
        """


class Workers(ABC):
    """Where workers come from.

    Attributes:
        processes: ids of the processes that workers are forked from.
    """

    processes: tuple[int, ...] = ()

    @abstractmethod
    def spawn(self, forbidden: tuple[str, ...] = ()) -> Process:
        """Start a worker.

        Args:
            forbidden: the functions that are taken away from it, at the latest when it is told so
                with the file that it loads.

        Raises:
            BoundaryError: that wasn't possible.
        """

    @abstractmethod
    def close(self) -> None:
        """End what serves all workers. Each worker is ended by itself."""


class ForkedWorkers(Workers):
    """Workers that fork servers fork and confine. Linux only.

    The first server is a fresh interpreter. From it another one is forked for each set of forbidden
    functions, which are taken away there once.

    Args:
        memory: bytes that a worker may use beyond what torch itself takes.
        cpu_seconds: seconds of CPU time that a worker may use.
        with_pytest: whether workers find pytest loaded.
        many: whether there will be so many that a slower start pays.

    Raises:
        BoundaryError: the fork server did not start.
    """

    def __init__(
        self, memory: int, cpu_seconds: int, *, many: bool = False, with_pytest: bool = False
    ) -> None:
        ours, theirs = _message_pair()
        limits = {"memory": memory, "cpu_seconds": cpu_seconds}
        wishes = {"many": many, "with_pytest": with_pytest}
        config = limits | {"secret": _secret_paths()} | wishes
        self._process = _boot(_BOOT_FORK_SERVER, theirs, config)
        self.processes = (self._process.pid,)
        self._servers: dict[tuple[str, ...], _Server] = {(): _Server(ours)}
        self._wait_for(self._servers[()])

    def _wait_for(self, server: _Server) -> None:
        try:
            server.wait_until_ready()
        except BoundaryError:
            self.close()
            raise

    def spawn(self, forbidden: tuple[str, ...] = ()) -> Process:
        """Ask for a new worker."""
        server = self._server(forbidden)
        ours, theirs = socket.socketpair()
        with theirs, shared_memory() as (memory, handle):
            answer = server.ask({"do": "fork"}, [theirs.fileno(), int(handle)])
        process = _ForkedProcess(server, answer["worker"], ours, memory)
        _wait_until_ready(process, _ASK_SECONDS)
        return process

    def _server(self, forbidden: tuple[str, ...]) -> _Server:
        """Return the server whose workers have these functions no more."""
        if forbidden not in self._servers:
            ours, theirs = _message_pair()
            with theirs:
                request = {"do": "prepare", "forbidden": forbidden}
                self._servers[()].ask(request, [theirs.fileno()])
            self._servers[forbidden] = _Server(ours)
            self._wait_for(self._servers[forbidden])
        return self._servers[forbidden]

    def close(self) -> None:
        """End the fork servers and with them all workers."""
        for server in self._servers.values():
            server.close()
        _wait_or_kill(self._process)


class _Server:
    """The connection to one fork server.

    Args:
        channel: carries one message at a time.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._count = 0

    def wait_until_ready(self) -> None:
        """Read its first message.

        Raises:
            BoundaryError: there is none.
        """
        self._channel.settimeout(_START_SECONDS)
        try:
            json.loads(self._channel.recv(4096))
        except (OSError, ValueError):
            raise BoundaryError("the fork server did not start") from None
        self._channel.settimeout(_ASK_SECONDS)

    def end(self, worker: int, grace: float) -> Ending:
        """Ask for the end of a worker, and return how it ended."""
        answer = self.ask({"do": "end", "worker": worker, "grace": grace})
        return Ending(answer["code"], answer["killed"], answer["out_of_time"])

    def ask(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        """Send a request, and return what is answered.

        Raises:
            BoundaryError: nothing is.
        """
        self._count += 1
        text = json.dumps(request | {"id": self._count}).encode()
        try:
            socket.send_fds(self._channel, [text], descriptors)
            deadline = time.monotonic() + _ASK_SECONDS
            while time.monotonic() < deadline:
                answer = json.loads(self._channel.recv(4096))
                # An answer to a request that was interrupted may still lie there.
                if answer["id"] == self._count:
                    return answer
        except (OSError, ValueError):
            pass
        raise BoundaryError("the fork server does not answer")

    def close(self) -> None:
        """Let it end."""
        self._channel.close()


def _message_pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class _ForkedProcess(Process):
    def __init__(self, server: _Server, pid: int, channel: socket.socket, memory: Memory) -> None:
        self._server = server
        self.pid = pid
        self.channel = channel
        self.memory = memory

    def end(self, grace: float = 0.0) -> Ending:
        self.channel.close()
        return self._server.end(self.pid, grace)


def _wait_until_ready(process: Process, seconds: float) -> None:
    """Read the worker's first message. It hasn't seen any student code yet."""
    try:
        told, _ = receive(process.channel, within(seconds))
    except (OSError, Closed, ProtocolError) as error:
        told = {"reason": f"{type(error).__name__} {error}"}
    if told.get("ready") is not True:
        process.end()
        raise BoundaryError(f"a worker could not be made ready: {told.get('reason')}")


class SpawnedWorkers(Workers):
    """Workers that are fresh interpreters, apart from this process but not confined."""

    def spawn(self, forbidden: tuple[str, ...] = ()) -> Process:
        """Start an interpreter and wait until it has loaded torch."""
        ours, theirs = socket.socketpair()
        with shared_memory() as (memory, handle):
            config = {"parent": os.getpid(), "shared": handle}
            started = _boot(_BOOT_WORKER, theirs, config)
        process = _SpawnedProcess(started, ours, memory)
        _wait_until_ready(process, _START_SECONDS)
        return process

    def close(self) -> None:
        """Do nothing: there is only the workers."""


class _SpawnedProcess(Process):
    def __init__(
        self, process: subprocess.Popen[bytes], channel: socket.socket, memory: Memory
    ) -> None:
        self._process = process
        self.pid = process.pid
        self.channel = channel
        self.memory = memory

    def end(self, grace: float = 0.0) -> Ending:
        self.channel.close()
        with suppress(subprocess.TimeoutExpired):
            return Ending(self._process.wait(grace))
        self._process.kill()
        return Ending(self._process.wait(), killed=True)


def _boot(program: str, channel: socket.socket, config: dict[str, Any]) -> subprocess.Popen[bytes]:
    """Start an interpreter with nothing but the given program, and hand it the channel."""
    descriptors = [channel.fileno()]
    if isinstance(config.get("shared"), int):
        descriptors.append(config["shared"])
    on_windows = sys.platform == "win32"
    process = subprocess.Popen(
        [sys.executable, "-I", "-W", "ignore", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=_environment(),
        pass_fds=() if on_windows else descriptors,
        start_new_session=not on_windows,
    )
    config = config | {"root": str(_ROOT), "wanted": _library_folders()}
    if sys.platform == "win32":
        config["share"] = base64.b64encode(channel.share(process.pid)).decode()
    else:
        config["fd"] = channel.fileno()
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(json.dumps(config).encode() + b"\n")
    channel.close()
    return process


def _environment() -> dict[str, str]:
    """Return the only variables that the other side starts with."""
    # Arenas of the C library and threads of OpenMP would count against the limit of memory.
    fixed = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "CUDA_VISIBLE_DEVICES": ""}
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
    return fixed | {name: os.environ[name] for name in kept if name in os.environ}


def _library_folders() -> list[str]:
    """Return the folders that hold the libraries which both sides need."""
    found = (Path(str(m.__file__)).resolve().parents[1] for m in (torch, numpy, msgspec))
    return sorted({str(folder) for folder in found})


def _secret_paths() -> list[str]:
    """Return what a worker must not read, wherever Python's own folders may lie."""
    # A virtual environment may lie in the course's folder, so not the whole folder is named.
    names = ("problems", "solutions", "tests", "examples", "docs", "grader", ".git")
    return [str(_ROOT / name) for name in names]


def _wait_or_kill(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
