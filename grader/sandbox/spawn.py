"""Spawn workers from the trusted process.

`ForkedWorkers` requests workers from a prefork server, which forks and confines them.
`SpawnedWorkers` starts a fresh interpreter for each worker. It works on every system, but does not
confine the workers.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
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

# Student code can read the main module, so delete the configuration there.
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
        code: the exit code, or -N after signal N.
        killed: whether the grader killed the worker while it was running.
        out_of_time: whether the worker had used all its CPU time.
    """

    code: int
    killed: bool = False
    out_of_time: bool = False


@dataclass(frozen=True, eq=False)
class Preloaded:
    """Code that a prefork server loads once for all its workers.

    Attributes:
        load: the function that loads the code, as `package.module:function`. It is called with a
            temporary folder, and returns a `RunOrder` of `worker.recording`.
        files: the contents of the files in this folder, by their paths.
    """

    load: str
    files: Mapping[str, bytes]

    @contextmanager
    def written(self) -> Iterator[list[str]]:
        """Write `files` into a temporary folder, and yield `load` and the folder's path."""
        with TemporaryDirectory() as folder:
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            yield [self.load, folder]


class WorkerProcess(ABC):
    """A worker process.

    Attributes:
        channel: a stream socket to the process.
        pid: the process id.
    """

    channel: socket.socket
    pid: int

    @abstractmethod
    def end(self, grace: float = 0.0) -> WorkerEnding:
        """Kill the process, unless it exits within a grace period.

        Args:
            grace: the grace period in seconds. A process that has closed its connection needs it,
                because such a process exits a little later.
        """


class Workers(ABC):
    """A source of workers.

    Attributes:
        processes: the ids of the processes from which workers are forked.
    """

    processes: tuple[int, ...] = ()

    @abstractmethod
    def spawn(
        self, preloaded: Preloaded | None, forbidden: tuple[str, ...], source: bytes
    ) -> WorkerProcess:
        """Start a worker that runs the tests of one order.

        Args:
            preloaded: the tests that the worker has loaded. None for a worker that only calls
                functions of the file.
            forbidden: the functions to remove from the worker.
            source: the student's file that the worker will receive.

        Raises:
            SandboxError: the worker could not be started.
        """

    @abstractmethod
    def close(self) -> None:
        """End the processes from which workers are forked."""


class _WorkerKind(NamedTuple):
    """The preparation of a prefork server, and of the workers that are forked from it.

    Attributes:
        forbidden: the functions that are removed.
        compiler: whether torch's compiler is loaded.
        preloaded: other code that the server loads for its workers, if any.
    """

    forbidden: tuple[str, ...] = ()
    compiler: bool = False
    preloaded: Preloaded | None = None

    @property
    def origin(self) -> _WorkerKind:
        """The kind of the server from which a server of this kind is forked.

        Each fork adds one step. The order is: load the compiler, load other code, remove functions.
        """
        if self.forbidden:
            return self._replace(forbidden=())
        return self._replace(preloaded=None) if self.preloaded else _WorkerKind()


class ForkedWorkers(Workers):
    """Fork confined workers from prefork servers. Linux only.

    There is one server for each `_WorkerKind`, which is forked from the server of its `origin`.
    Kinds differ in the loaded tests, in the removed functions, and in whether torch's compiler is
    loaded.

    Args:
        memory: bytes that a worker may use in addition to torch's memory.
        cpu_seconds: the limit of a worker's CPU time in seconds.
        prefork_server: the connection to a running server that waits for its settings. Without it,
            a fresh interpreter is started.

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
        """Request a new worker from the prefork server of the worker's kind."""
        server = self._server(_WorkerKind(forbidden, may_want_compiler(source), preloaded))
        ours, theirs = socket.socketpair()
        with theirs:
            response = server.request({"do": "fork"}, [theirs.fileno()])
        process = _ForkedWorker(server, response["worker"], ours)
        _wait_until_ready(process, RESPONSE_SECONDS)
        return process

    def _server(self, kind: _WorkerKind) -> RequestChannel:
        """Return the server of a kind. Start it at the first call."""
        if kind not in self._servers:
            self._servers[kind] = self._fork_server(kind, self._server(kind.origin))
        return self._servers[kind]

    def _fork_server(self, kind: _WorkerKind, origin: RequestChannel) -> RequestChannel:
        """Let `origin` fork a server of a kind, and wait until the new server is prepared."""
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
        """End the prefork servers, which end all workers."""
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
    """Wait until a worker reports that it is ready. Call this before it receives student code.

    Raises:
        SandboxError: the worker reported an error, or did not respond in time.
    """
    try:
        reason = receive_frame(process.channel, _MOST_REASON, within(seconds)).decode()
    except (OSError, Closed, ProtocolError) as error:
        reason = f"{type(error).__name__} {error}"
    if reason:
        process.end()
        raise SandboxError(f"a worker could not be prepared: {reason}")


class SpawnedWorkers(Workers):
    """Workers in fresh interpreters. They are separate from this process, but not confined."""

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
        """Do nothing, as workers are not forked from another process."""


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
    """Return whether a student's file mentions a name that could make torch load its compiler."""
    text = source.lower()
    return any(part in text for part in _PARTS) or _WORDS.search(text) is not None
