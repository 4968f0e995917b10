"""The template process: a clean interpreter that loads torch once, then forks.

Loading torch takes longer than most tasks, and both the trusted process and the workers need torch.
So torch is loaded before the fork, in a process that was started with a clean environment and
contains no data of the tests, the solutions, the students or the instructor:

    command                      this process                    its forks
    --- "start" + a socket --->  fork, fork  ----------------->  a prefork server, if requested
                                                 ------------->  a trusted process, which receives
                                                                 its task on that socket
    --- "look", "end" -------->  wait, kill

The trusted process and its prefork server are connected by another socket. Data that the trusted
process receives or loads later never reaches the prefork server and its workers. A template process
has one thread, keeps no secret and runs no student code. When the command's connection closes, the
template process kills all its forks and exits.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import pkgutil
import random
import signal
import socket
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import grader.code.tensors  # noqa: F401  (loads torch for all forks)

if sys.platform != "win32":
    from grader.sandbox.libc import die_with

_MESSAGE = 4096
_GRACE_SECONDS = 5.0


def main(channel: socket.socket, config: dict[str, Any]) -> NoReturn:
    """Serve requests until the connection closes, or run as one of the forked processes.

    Args:
        channel: the connection to the command.
        config: the `parent` that started this process, and the `root` of the grader.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with(config["parent"])
    gc.freeze()  # so that forks share most memory pages
    try:
        become = _Template(channel, config["root"]).serve()
        del channel, config
        become()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        # Skip the exit handlers of torch's libraries, as some of them print.
        os._exit(0)


class _Template:
    def __init__(self, channel: socket.socket, root: str) -> None:
        self._channel = channel
        self._root = root
        self._forked: set[int] = set()

    def serve(self) -> Callable[[], None]:
        """Respond to requests until the connection closes, and return the function to call next.

        In a forked process, return at once with the function that this process must call. The
        caller then calls the function, so that student code in later forks can't find a frame of
        this class.
        """
        while True:
            try:
                message, descriptors, _, _ = socket.recv_fds(self._channel, _MESSAGE, 4)
            except ConnectionError:
                message, descriptors = b"", []
            if not message:
                return self._end_all
            request = json.loads(message)
            if request["do"] == "start":
                become = self._start(descriptors[0], request)
                if become is not None:
                    return become
            else:
                self._respond(request["id"], self._look_or_end(request))

    def _start(self, connection: int, request: dict[str, Any]) -> Callable[[], None] | None:
        """Fork a trusted process, and a prefork server if requested.

        Returns:
            In a forked process, the function that it must call. In the template process, None.
        """
        template = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server = os.fork() if request["with_prefork_server"] else None
        if server == 0:
            die_with(template)
            ours.close()
            self._channel.close()
            return _prefork_server(keep_only(theirs.detach(), silent=False), self._root)
        theirs.close()
        trusted = os.fork()
        if not trusted:
            die_with(template)
            self._channel.close()
            to_server = None if server is None else ours
            return functools.partial(_be_trusted, connection, to_server)
        ours.close()
        os.close(connection)
        self._forked |= {trusted} if server is None else {server, trusted}
        self._respond(request["id"], {"process": trusted})
        return None

    def _look_or_end(self, request: dict[str, Any]) -> dict[str, Any]:
        process = request["process"]
        if process not in self._forked:
            return {"code": 0}
        if request["do"] == "look":
            ended = ended_by_itself(process)
            code = None if ended is None else ended[0]
        else:
            code, _, _ = end(process, request["grace"])
        if code is not None:
            self._forked.remove(process)
        return {"code": code}

    def _respond(self, request: int, response: dict[str, Any]) -> None:
        with suppress(ConnectionError):  # `serve` detects the closed connection
            self._channel.send(json.dumps(response | {"id": request}).encode())

    def _end_all(self) -> None:
        # Trusted processes exit when their connections close, and so do their prefork servers.
        for process in sorted(self._forked, reverse=True):
            end(process, _GRACE_SECONDS)


def _prefork_server(channel: int, root: str) -> Callable[[], None]:
    """Load the prefork server's modules, and return its main function."""
    os.setsid()
    warnings.simplefilter("ignore")
    sys.path.insert(0, root)
    from grader.sandbox.prefork_server import main as serve

    sys.path.remove(root)
    return functools.partial(serve, socket.socket(fileno=channel))


def be_trusted_alone(channel: socket.socket, config: dict[str, Any]) -> None:
    """Run as a trusted process without a template process and without a prefork server.

    Args:
        channel: the connection to the command.
        config: the `parent` that started this process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C, the command ends this process
    if sys.platform == "linux":
        die_with(config["parent"])
    _be_trusted(channel.detach(), None)


def _be_trusted(connection: int, prefork_server: socket.socket | None) -> None:
    """Copy the settings of the command, then call the function that the command requests."""
    link = Connection(connection)
    setup = json.loads(link.recv_bytes())
    os.environ.clear()
    os.environ.update(setup["environment"])
    sys.path[:] = setup["path"]
    sys.argv[:] = setup["arguments"]
    sys.dont_write_bytecode = setup["dont_write_bytecode"]
    tempfile.tempdir = None  # let tempfile choose a folder again, as TMPDIR may differ
    random.seed()  # otherwise a worker could predict the random numbers
    target, arguments = link.recv()
    function = pkgutil.resolve_name(target)
    gc.enable()
    function(link, prefork_server, *arguments)


def keep_only(descriptor: int, *, silent: bool = True) -> int:
    """Change the number of a file descriptor to 3, close all other descriptors, and return 3.

    Args:
        descriptor: the descriptor to keep.
        silent: whether to redirect the descriptors 0, 1 and 2 to the null device. If it is False,
            redirect only 0 and 1, and keep 2 open for error messages.
    """
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2) if silent else (0, 1):
        os.dup2(null, number)
    if descriptor != 3:
        os.dup2(descriptor, 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    return 3


def end(process: int, grace: float) -> tuple[int, bool, float]:
    """Wait until a process ends, and kill it after a grace period.

    Args:
        process: the id of a child process for which this process has not waited yet.
        grace: the grace period in seconds.

    Returns:
        The exit code (or -N after signal N), whether the process was killed, and its CPU time in
        seconds.
    """
    ended = ended_by_itself(process)
    deadline = time.monotonic() + grace
    while ended is None and time.monotonic() < deadline:
        time.sleep(0.001)
        ended = ended_by_itself(process)
    if ended is not None:
        return ended[0], False, ended[1]
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    code, seconds = ended_by_itself(process, options=0) or (0, 0.0)  # waits for the end
    return code, True, seconds


def ended_by_itself(process: int, options: int = os.WNOHANG) -> tuple[int, float] | None:
    """Return a process's exit code and CPU time in seconds, or None if it is still running."""
    pid, status, usage = os.wait4(process, options)
    if not pid:
        return None
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
