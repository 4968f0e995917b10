"""Start a clean interpreter, and fork trusted processes and their prefork servers from it.

    with TemplateProcess() as template:
        process, connection = template.start("grader.grade.job:serve", course)

calls `serve(connection, prefork_server, course)` of that module in a new process, which has already
loaded torch. There, `ForkedWorkers(..., prefork_server=prefork_server)` starts no other
interpreter. This works on Linux only; `template` explains what each process inherits. `start_alone`
works on all systems: it starts a trusted process in a separate interpreter, without a prefork
server.

A clean interpreter inherits nothing from the process that starts it. In grading, student code runs
only in clean interpreters and in forks of them. This module does not import torch, so a command can
use it without loading torch.
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
"""The time limit for a fresh interpreter to load torch, on a busy machine."""

RESPONSE_SECONDS = 60.0
"""The time limit for a response of an interpreter that has loaded torch."""

# The program of a fresh interpreter. It reads its configuration from standard input, because
# student code could read the arguments of the command line. The root folder is on `sys.path` only
# while the program imports the grader's modules.
BOOT = """
import base64, gc, json, os, socket, sys
gc.disable()  # loading torch leaves no garbage, so collections would only take time
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
    """Start an interpreter with the given program, and pass the channel on to it.

    Args:
        program: `BOOT`, formatted for a function of a module, followed by a call of the function.
        channel: the channel. It is closed in this process.
        config: the program's configuration. `boot` adds the folders of the grader and of libraries.
        quiet: whether to suppress the program's output and warnings.
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
    """Return all environment variables of a new interpreter."""
    # Additional arenas of malloc and threads of OpenMP would count against the memory limit.
    fixed = {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "CUDA_VISIBLE_DEVICES": ""}
    fixed["OMP_WAIT_POLICY"] = "passive"  # idle threads use no core
    # Use large memory pages if possible (glibc 2.35 or later). With small pages, a worker would
    # spend half of its system time on providing memory for tensors.
    fixed["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    kept = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
    return fixed | {name: os.environ[name] for name in kept if name in os.environ}


def library_folders() -> list[str]:
    """Return the folders of the libraries that the trusted process and the workers need.

    The folders are in the order of `sys.path`. The order matters in layered environments, where a
    later folder may contain a different version of torch.
    """
    specs = (find_spec(name) for name in ("torch", "numpy", "msgspec"))
    origins = (spec.origin for spec in specs if spec is not None and spec.origin)
    folders = {str(Path(origin).resolve().parents[1]) for origin in origins}
    order = [entry for entry in map(_resolved, sys.path) if entry in folders]
    return [*dict.fromkeys(order), *sorted(folders.difference(order))]


def _resolved(entry: str) -> str:
    return str(Path(entry).resolve())


def secret_paths() -> list[str]:
    """Return the paths that a worker must not read, even if they are in a readable folder."""
    # A virtual environment may be in the course's folder, so the whole folder can't be secret.
    names = ("problems", "solutions", "tests", "examples", "docs", "grader", ".git")
    roots = [ROOT]
    with suppress(UsageError):  # there may be no course
        roots.append(own_course().root)
    return [str(root / name) for root in dict.fromkeys(roots) for name in names]


def message_pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a new connection that preserves message boundaries. Linux only."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def wait_or_kill(process: subprocess.Popen[bytes], seconds: float = 5.0) -> None:
    """Wait until a process exits; kill it after `seconds`."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class SandboxError(InternalError):
    """The sandbox failed. This is an error of the grader, never of a student."""


class RequestChannel:
    """The connection to a process that carries out requests. Linux only.

    Args:
        channel: a socket that preserves message boundaries.
        name: the name of the process in error messages.
    """

    def __init__(self, channel: socket.socket, name: str) -> None:
        self._channel = channel
        self._name = name
        self._count = 0
        self._channel.settimeout(START_SECONDS)

    def wait_until_ready(self) -> Any:
        """Read the first message, which the process sends without a request.

        Raises:
            SandboxError: there is no message.
        """
        try:
            first = json.loads(self._channel.recv(4096))
        except (OSError, ValueError):
            raise SandboxError(f"{self._name} did not start") from None
        self._channel.settimeout(RESPONSE_SECONDS)
        return first

    def send(self, message: dict[str, Any]) -> None:
        """Send a message that requires no response.

        If the process cannot use the message, the next request fails.

        Raises:
            SandboxError: the connection is closed.
        """
        try:
            self._channel.send(json.dumps(message).encode())
        except OSError:
            raise SandboxError(f"{self._name} did not start") from None

    def request(self, request: dict[str, Any], descriptors: Sequence[int] = ()) -> Any:
        """Send a request, and return the response.

        Raises:
            SandboxError: there is no response.
        """
        self._count += 1
        text = json.dumps(request | {"id": self._count}).encode()
        try:
            socket.send_fds(self._channel, [text], descriptors)
            deadline = time.monotonic() + (self._channel.gettimeout() or RESPONSE_SECONDS)
            while time.monotonic() < deadline:
                response = json.loads(self._channel.recv(4096))
                # A response to an interrupted request may still be in the queue.
                if response["id"] == self._count:
                    return response
        except (OSError, ValueError):
            pass
        raise SandboxError(f"{self._name} does not respond")

    def close(self) -> None:
        """Close the connection, so that the process exits."""
        self._channel.close()


_CALL = "main(channel, globals().pop('config'))\n"
_BOOT_TEMPLATE = BOOT.format(module="template", main="main") + _CALL
_BOOT_ALONE = BOOT.format(module="template", main="be_trusted_alone") + _CALL


_END_SECONDS = 15.0


class TemplateProcess:
    """A context manager that starts and ends a clean interpreter, to fork processes from it."""

    def __enter__(self) -> Self:
        """Start the template process."""
        self._boot()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the template process and all its forks."""
        self._channel.close()
        wait_or_kill(self._process, _END_SECONDS)

    def _boot(self) -> None:
        ours, theirs = message_pair()
        self._process = boot(_BOOT_TEMPLATE, theirs, {"parent": os.getpid()}, quiet=False)
        self._channel = RequestChannel(ours, "the process that loads torch")

    def start(
        self, target: str, *arguments: object, with_prefork_server: bool = True
    ) -> tuple[TrustedProcess, Connection]:
        """Start a trusted process, and return the process and the connection to it.

        Args:
            target: the function that the process calls, as `package.module:function`. Its arguments
                are the process's end of the connection, a connection to the process's prefork
                server or None, and `arguments`.
            arguments: further arguments, which must be picklable.
            with_prefork_server: whether to start a prefork server for the process.

        Raises:
            SandboxError: the process could not be started.
        """
        ours, theirs = multiprocessing.Pipe()
        with theirs:
            request = {"do": "start", "with_prefork_server": with_prefork_server}
            process = self._forked(theirs.fileno(), request)
        _send_target(ours, target, arguments)
        return TrustedProcess(self._channel, process), ours

    def _forked(self, connection: int, request: dict[str, Any]) -> int:
        try:
            response = self._channel.request(request, [connection])
        except SandboxError:
            # The template process may have been killed. Start a new one.
            self.__exit__(None, None, None)
            self._boot()
            response = self._channel.request(request, [connection])
        return int(response["process"])


def _send_target(connection: Connection, target: str, arguments: tuple[object, ...]) -> None:
    """Send a trusted process its settings, the function to call and the arguments."""
    # If the process has ended, the next request fails.
    with suppress(BrokenPipeError, ConnectionResetError):
        connection.send_bytes(json.dumps(_setup()).encode())
        connection.send((target, arguments))


def _setup() -> dict[str, object]:
    """Return the settings of this interpreter that a trusted process must copy."""
    return {
        "environment": dict(os.environ),
        "path": [str(entry) for entry in sys.path],
        "arguments": sys.argv,
        "dont_write_bytecode": sys.dont_write_bytecode,
    }


class TrustedProcess:
    """A trusted process that was forked from the template process.

    Attributes:
        exitcode: the exit code, or -N after signal N. None while the process runs, and if the code
            is unknown.
    """

    def __init__(self, channel: RequestChannel, process: int) -> None:
        self._channel = channel
        self._process = process
        self._ended = False
        self.exitcode: int | None = None

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        self._request({"do": "look"})
        return not self._ended

    def join(self, timeout: float) -> None:
        """Wait until the process has ended; kill it after `timeout` seconds."""
        self._request({"do": "end", "grace": timeout})

    def kill(self) -> None:
        """Kill the process."""
        self.join(0.0)

    def _request(self, request: dict[str, object]) -> None:
        if self._ended:
            return
        try:
            self.exitcode = self._channel.request(request | {"process": self._process})["code"]
            self._ended = self.exitcode is not None
        except SandboxError:
            self._ended = True  # it ended together with the template process


class FreshProcess:
    """A trusted process in a separate interpreter, with the methods of `TrustedProcess`."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def exitcode(self) -> int | None:
        """The exit code, or -N after signal N. None while the process runs."""
        return self._process.poll()

    def is_alive(self) -> bool:
        """Return whether the process is running."""
        return self._process.poll() is None

    def join(self, timeout: float) -> None:
        """Wait until the process has ended; kill it after `timeout` seconds."""
        wait_or_kill(self._process, timeout)

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()


def start_alone(target: str, *arguments: object) -> tuple[FreshProcess, Connection]:
    """Start a trusted process without a prefork server, in a fresh interpreter that loads torch.

    Args:
        target: the function that the process calls, as for `TemplateProcess.start`. It receives
            None instead of a connection to a prefork server.
        arguments: further arguments, which must be picklable.
    """
    ours, theirs = socket.socketpair()
    process = boot(_BOOT_ALONE, theirs, {"parent": os.getpid()}, quiet=False)
    connection = Connection(ours.detach())
    _send_target(connection, target, arguments)
    return FreshProcess(process), connection
