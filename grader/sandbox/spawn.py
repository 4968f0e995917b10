"""Spawns the processes that student code runs in. This is the trusted side's half.

Two ways: `ForkedWorkers` asks a prefork server for workers, which it forks and confines;
`SpawnedWorkers` starts a fresh interpreter for each, which works everywhere and confines nothing.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from grader.sandbox.frames import Closed, ProtocolError, receive_frame, within
from grader.sandbox.starting import (
    BOOT,
    RESPONSE_SECONDS,
    START_SECONDS,
    RequestChannel,
    SandboxError,
    boot,
    library_folders,
    message_pair,
    secret_paths,
    wait_or_kill,
)

_MOST_REASON = 1 << 16

# What is left in the main module, student code can read.
_BOOT_FORK_SERVER = (
    BOOT.format(module="prefork_server", main="main") + "del config\nmain(channel)\n"
)
_DIE_WITH_PARENT = """
if sys.platform == "linux":
    from grader.sandbox.libc import die_with
    die_with(config["parent"])
gc.enable()
"""
_BOOT_WORKER = (
    BOOT.format(module="worker.recording", main="main_alone")
    + _DIE_WITH_PARENT
    + "main(channel, globals().pop('config'))\n"
)


@dataclass(frozen=True)
class WorkerEnding:
    """How a worker ended.

    Attributes:
        code: its exit code; -N after signal N.
        killed: whether it was still alive, and was killed from here.
        out_of_time: whether it had used all the processor time that the kernel grants it.
    """

    code: int
    killed: bool = False
    out_of_time: bool = False


@dataclass(frozen=True)
class Preloaded:
    """Code that a prefork server loads for its workers, which then carry out one order each.

    Attributes:
        load: the function that loads it, as `package.module:function`. It is called with a folder,
            and returns what `worker.recording` runs tests with.
        write: writes the files that it needs into that folder, which is gone afterwards.
    """

    load: str
    write: Callable[[Path], None]

    @contextmanager
    def written(self) -> Iterator[list[str]]:
        """Give the function and a folder that its files are in, while this context lasts."""
        with TemporaryDirectory() as folder:
            self.write(Path(folder))
            yield [self.load, folder]


class WorkerProcess(ABC):
    """A worker process.

    Attributes:
        channel: a stream socket to it.
        pid: its id.
    """

    channel: socket.socket
    pid: int

    @abstractmethod
    def end(self, grace: float = 0.0) -> WorkerEnding:
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
    def spawn(
        self, preloaded: Preloaded | None, forbidden: tuple[str, ...], source: bytes
    ) -> WorkerProcess:
        """Start a worker that carries out one order.

        Args:
            preloaded: what it has loaded; None for one that calls functions of the file.
            forbidden: the functions that are taken away from it.
            source: the file that it will get.

        Raises:
            SandboxError: that wasn't possible.
        """

    @abstractmethod
    def close(self) -> None:
        """End what serves all workers. Each worker is ended by itself."""


class _WorkerKind(NamedTuple):
    """Of workers: what is loaded in them, and what is taken away.

    Attributes:
        forbidden: the functions that are taken away.
        compiler: whether torch's compiler is loaded.
        preloaded: other code that is loaded.
    """

    forbidden: tuple[str, ...] = ()
    compiler: bool = False
    preloaded: Preloaded | None = None

    @property
    def origin(self) -> _WorkerKind:
        """The kind that has all but one of that; what was loaded first is taken away from, too."""
        if self.forbidden:
            return self._replace(forbidden=())
        return self._replace(preloaded=None) if self.preloaded else _WorkerKind()


class ForkedWorkers(Workers):
    """Workers that prefork servers fork and confine. Linux only.

    From the first server another one is forked for each set of forbidden functions, which are taken
    away there once, and one for files that may want torch's compiler, which is loaded there.

    Args:
        memory: bytes that a worker may use beyond what torch itself takes.
        cpu_seconds: seconds of CPU time that a worker may use.
        prefork_server: the connection to a first server that was started already and waits for its
            settings; without it, a fresh interpreter is started.

    Raises:
        SandboxError: the prefork server did not start.
    """

    def __init__(
        self,
        memory: int,
        cpu_seconds: int,
        *,
        prefork_server: socket.socket | None = None,
    ) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if prefork_server is None:
            prefork_server, theirs = message_pair()
            self._process = boot(_BOOT_FORK_SERVER, theirs, {})
        first = RequestChannel(prefork_server, "the prefork server")
        self._servers = {_WorkerKind(): first}
        limits = {"memory": memory, "cpu_seconds": cpu_seconds}
        paths = {"secret": secret_paths(), "wanted": library_folders()}
        first.send(limits | paths)
        self.processes = (self._wait_for(first)["process"],)

    def _wait_for(self, server: RequestChannel) -> Any:
        try:
            return server.wait_until_ready()
        except SandboxError:
            self.close()
            raise

    def spawn(
        self, preloaded: Preloaded | None, forbidden: tuple[str, ...], source: bytes
    ) -> WorkerProcess:
        """Ask for a new worker that carries out one order."""
        server = self._server(_WorkerKind(forbidden, may_want_compiler(source), preloaded))
        ours, theirs = socket.socketpair()
        with theirs:
            response = server.request({"do": "fork"}, [theirs.fileno()])
        process = _ForkedWorker(server, response["worker"], ours)
        _wait_until_ready(process, RESPONSE_SECONDS)
        return process

    def _server(self, kind: _WorkerKind) -> RequestChannel:
        """Return the server whose workers are of a kind."""
        if kind not in self._servers:
            self._servers[kind] = self._prepared(kind, self._server(kind.origin))
        return self._servers[kind]

    def _prepared(self, kind: _WorkerKind, origin: RequestChannel) -> RequestChannel:
        """Have a server fork another one, and wait until that has done what its kind takes."""
        preloaded = None if kind.forbidden else kind.preloaded
        ours, theirs = message_pair()
        with preloaded.written() if preloaded else nullcontext() as load:
            request = {
                "do": "prepare",
                "forbidden": kind.forbidden,
                "compiler": kind.compiler and kind.origin == _WorkerKind(),
                "load": load,
            }
            with theirs:
                origin.request(request, [theirs.fileno()])
            server = RequestChannel(ours, "the prefork server")
            self._wait_for(server)
        return server

    def close(self) -> None:
        """End the prefork servers and with them all workers."""
        for server in self._servers.values():
            server.close()
        if self._process is not None:
            wait_or_kill(self._process)


class _ForkedWorker(WorkerProcess):
    def __init__(self, server: RequestChannel, pid: int, channel: socket.socket) -> None:
        self._server = server
        self.pid = pid
        self.channel = channel

    def end(self, grace: float = 0.0) -> WorkerEnding:
        self.channel.close()
        response = self._server.request({"do": "end", "worker": self.pid, "grace": grace})
        return WorkerEnding(response["code"], response["killed"], response["out_of_time"])


def _wait_until_ready(process: WorkerProcess, seconds: float) -> None:
    """Read the worker's first message: why it isn't ready. It hasn't seen any student code yet."""
    try:
        reason = receive_frame(process.channel, _MOST_REASON, within(seconds)).decode()
    except (OSError, Closed, ProtocolError) as error:
        reason = f"{type(error).__name__} {error}"
    if reason:
        process.end()
        raise SandboxError(f"a worker could not be made ready: {reason}")


class SpawnedWorkers(Workers):
    """Workers that are fresh interpreters, apart from this process but not confined."""

    def spawn(
        self, preloaded: Preloaded | None, forbidden: tuple[str, ...], source: bytes
    ) -> WorkerProcess:
        """Start an interpreter, and wait until it has loaded torch and the tests."""
        ours, theirs = socket.socketpair()
        with preloaded.written() if preloaded else nullcontext() as load:
            config = {"parent": os.getpid(), "forbidden": forbidden, "load": load}
            process = _FreshWorker(boot(_BOOT_WORKER, theirs, config), ours)
            _wait_until_ready(process, START_SECONDS)
        return process

    def close(self) -> None:
        """Do nothing: there is only the workers."""


class _FreshWorker(WorkerProcess):
    def __init__(self, process: subprocess.Popen[bytes], channel: socket.socket) -> None:
        self._process = process
        self.pid = process.pid
        self.channel = channel

    def end(self, grace: float = 0.0) -> WorkerEnding:
        self.channel.close()
        with suppress(subprocess.TimeoutExpired):
            return WorkerEnding(self._process.wait(grace))
        self._process.kill()
        return WorkerEnding(self._process.wait(), killed=True)


_PARTS = (
    b"meta compil dynamo inductor functorch jvp vjp jac hess checkpoint export script librar "
    b"custom dispatch distrib onnx sparse nested quant sympy _refs _prims _decomp getattr "
    b"importlib __import__ flex tensor.parallel fake symbol parametri scan while_loop forward_ad "
    b"dual_level make_dual torch.masked maskedtensor masked_tensor use_deterministic higher_order "
    b"_check sys.modules globals __dict__ vars("
).split()
_WORDS = re.compile(
    rb"\b(?:optim|fx|jit|_c|ops|cond|utils|torch\.func|import func)\b"
    rb"|exec\b|bias import|import masked|\bsym_"
)


def may_want_compiler(source: bytes) -> bool:
    """Return whether a student's file mentions anything for which torch could load its compiler."""
    text = source.lower()
    return any(part in text for part in _PARTS) or _WORDS.search(text) is not None
