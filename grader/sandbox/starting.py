"""Starts clean interpreters, and from one of them trusted processes, each beside a prefork server.

    with TemplateProcess() as template:
        process, connection = template.start("grader.grade.job:serve", course)

runs `serve(connection, prefork_server, course)` of that module in a process that has torch loaded
already, where `ForkedWorkers(..., prefork_server=prefork_server)` starts no interpreter. On Linux
only. `template` says who inherits what. `start_alone` starts one in an interpreter of its own, on
all systems, without a prefork server.

A clean interpreter knows nothing of this process: it is the origin of all that runs student code.
This module does without torch, so that a command can start one that has it and do without itself.
"""

from __future__ import annotations

import base64
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from grader.course import own_course
from grader.errors import InternalError, UsageError

ROOT = Path(__file__).resolve().parents[2]

START_SECONDS = 120.0
"""How long a fresh interpreter may take to load torch, on a busy machine."""

RESPONSE_SECONDS = 60.0
"""How long one that has it may take to respond."""

# What a fresh interpreter runs. It reads what to do from its standard input, not from arguments,
# which student code could read. The course is on its path only while its few modules are imported.
BOOT = """
import base64, gc, json, os, socket, sys
gc.disable()  # while torch is loaded, which makes no garbage
config = json.loads(sys.stdin.buffer.readline())
sys.path[:0] = [config["root"], *config["wanted"]]
from grader.sandbox.{module} import {main} as main
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
    quiet: bool = True,
) -> subprocess.Popen[bytes]:
    """Start an interpreter with nothing but the given program, and hand it the channel.

    Args:
        program: `BOOT` for some function of a module, and what comes then.
        channel: is closed here.
        config: what the program reads, besides where the grader and the libraries are.
        quiet: whether it prints nothing, and ignores warnings.
    """
    on_windows = sys.platform == "win32"
    process = subprocess.Popen(
        [sys.executable, "-I", *_warnings(quiet), "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL if quiet else None,
        env=_environment(),
        pass_fds=() if on_windows else (channel.fileno(),),
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
    fixed["OMP_WAIT_POLICY"] = "passive"  # should there be more threads, idle ones take no core
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
    roots = [ROOT]
    with suppress(UsageError):  # without a course there is nothing of one to read
        roots.append(own_course().root)
    return [str(root / name) for root in dict.fromkeys(roots) for name in names]


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


class SandboxError(InternalError):
    """The sandbox itself can't do its work: the grader's own fault, never a student's."""


class RequestChannel:
    """The connection to a process that carries out requests. Linux only.

    Args:
        channel: carries one message at a time.
        name: what the process is called.
    """

    def __init__(self, channel: socket.socket, name: str) -> None:
        self._channel = channel
        self._name = name
        self._count = 0
        self._channel.settimeout(START_SECONDS)

    def wait_until_ready(self) -> Any:
        """Read the first message, where the process sends one by itself.

        Raises:
            SandboxError: there is none.
        """
        try:
            first = json.loads(self._channel.recv(4096))
        except (OSError, ValueError):
            raise SandboxError(f"{self._name} did not start") from None
        self._channel.settimeout(RESPONSE_SECONDS)
        return first

    def send(self, message: dict[str, Any]) -> None:
        """Send a message that has no response; what is wrong with it shows later."""
        try:
            self._channel.send(json.dumps(message).encode())
        except OSError:
            raise SandboxError(f"{self._name} did not start") from None

    def request(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        """Send a request, and return the response.

        Raises:
            SandboxError: nothing is.
        """
        self._count += 1
        text = json.dumps(request | {"id": self._count}).encode()
        try:
            socket.send_fds(self._channel, [text], descriptors)
            deadline = time.monotonic() + (self._channel.gettimeout() or RESPONSE_SECONDS)
            while time.monotonic() < deadline:
                response = json.loads(self._channel.recv(4096))
                # A response to a request that was interrupted may still lie there.
                if response["id"] == self._count:
                    return response
        except (OSError, ValueError):
            pass
        raise SandboxError(f"{self._name} does not respond")

    def close(self) -> None:
        """Let it end."""
        self._channel.close()


_CALL = "main(channel, globals().pop('config'))\n"
_BOOT_TEMPLATE = BOOT.format(module="template", main="main") + _CALL
_BOOT_ALONE = BOOT.format(module="template", main="be_trusted_alone") + _CALL


_END_SECONDS = 15.0


class TemplateProcess:
    """A clean interpreter to fork from. A context manager, which starts and ends it."""

    def __enter__(self) -> Self:
        """Start it."""
        self._boot()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End it, and all that was forked from it."""
        self._channel.close()
        wait_or_kill(self._process, _END_SECONDS)

    def _boot(self) -> None:
        ours, theirs = message_pair()
        self._process = boot(_BOOT_TEMPLATE, theirs, {"parent": os.getpid()}, quiet=False)
        self._channel = RequestChannel(ours, "the process that loads torch")

    def start(
        self, target: str, *arguments: object, beside: bool = True
    ) -> tuple[TrustedProcess, Connection]:
        """Start a trusted process, and return it with the connection to it.

        Args:
            target: the function that it runs, as `package.module:function`: with its end of the
                connection, a connection to its prefork server, and the arguments.
            arguments: have to go through pickle.
            beside: whether a prefork server is started beside it.

        Raises:
            SandboxError: that wasn't possible.
        """
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            process = self._forked(theirs.fileno(), {"do": "start", "beside": beside})
        _tell(ours, target, arguments)
        return TrustedProcess(self._channel, process), ours

    def _forked(self, connection: int, request: dict[str, Any]) -> int:
        try:
            response = self._channel.request(request, [connection])
        except SandboxError:
            # It may have been killed. A new one serves from now on.
            self.__exit__(None, None, None)
            self._boot()
            response = self._channel.request(request, [connection])
        return int(response["process"])


def _tell(connection: Connection, target: str, arguments: tuple[object, ...]) -> None:
    """Tell a trusted process what it is to be like, and to do."""
    with suppress(BrokenPipeError, ConnectionResetError):  # it died; whoever asks it notices
        connection.send_bytes(json.dumps(_setup()).encode())
        connection.send((target, arguments))


def _setup() -> dict[str, object]:
    """Return what makes another interpreter like this one."""
    return {
        "environment": dict(os.environ),
        "path": [str(entry) for entry in sys.path],
        "arguments": sys.argv,
        "dont_write_bytecode": sys.dont_write_bytecode,
    }


class TrustedProcess:
    """A trusted process that was forked.

    Attributes:
        exitcode: how it ended, -N after signal N; None while it lives or where that isn't known.
    """

    def __init__(self, channel: RequestChannel, process: int) -> None:
        self._channel = channel
        self._process = process
        self._ended = False
        self.exitcode: int | None = None

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        self._request({"do": "look"})
        return not self._ended

    def join(self, timeout: float) -> None:
        """Wait until it has ended by itself, and end it after so many seconds."""
        self._request({"do": "end", "grace": timeout})

    def kill(self) -> None:
        """End it at once."""
        self.join(0.0)

    def _request(self, request: dict[str, object]) -> None:
        if self._ended:
            return
        try:
            self.exitcode = self._channel.request(request | {"process": self._process})["code"]
            self._ended = self.exitcode is not None
        except SandboxError:
            self._ended = True  # with the one that it was forked from


class FreshProcess:
    """A trusted process that is an interpreter of its own, with the methods of `TrustedProcess`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def exitcode(self) -> int | None:
        """How it ended, -N after signal N; None while it lives."""
        return self._process.poll()

    def is_alive(self) -> bool:
        """Return whether it has not ended."""
        return self._process.poll() is None

    def join(self, timeout: float) -> None:
        """Wait until it has ended by itself, and end it after so many seconds."""
        wait_or_kill(self._process, timeout)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()


def start_alone(target: str, *arguments: object) -> tuple[FreshProcess, Connection]:
    """Start a trusted process without a prefork server, in an interpreter that loads torch.

    Args:
        target: the function that it runs, as for `TemplateProcess.start`; it gets None in the place
            of a prefork server.
        arguments: have to go through pickle.
    """
    ours, theirs = socket.socketpair()
    process = boot(_BOOT_ALONE, theirs, {"parent": os.getpid()}, quiet=False)
    connection = Connection(ours.detach())
    _tell(connection, target, arguments)
    return FreshProcess(process), connection
