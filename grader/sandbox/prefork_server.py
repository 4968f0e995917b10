"""The prefork server: a process that has loaded torch, and forks a worker for each request.

The server starts with a clean environment, so neither the server nor a worker contains data of the
solutions or of the trusted process. The server has one thread, keeps no secret and never runs
student code.

    trusted process                 this process                    workers
    --- "fork" + a socket ------>   fork, confine, serve  ------->  respond on that socket
    --- "end" ------------------>   kill, wait
    <-- exit code ---------------

For a "prepare" request, the server forks a new prefork server, which loads a problem's tests or
torch's compiler, or removes forbidden functions. So this work is done once, and not in each worker.

When the connection of a server closes, the server kills its workers and exits.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any, NoReturn

import torch

from grader.sandbox.confine import confine, may_become, pick_uid
from grader.sandbox.frames import send_frame
from grader.sandbox.landlock import readable_paths
from grader.sandbox.libc import (
    die_with,
    hide_from_debuggers,
    keep_access_times,
)
from grader.sandbox.template import end, keep_only
from grader.sandbox.worker import recording
from grader.sandbox.worker.recording import prepare_torch
from grader.sandbox.worker.removal import removable, remove
from grader.sandbox.worker.student_file import hide_own_modules

_MESSAGE, _SETTINGS = 4096, 1 << 17
_ROUNDING = 0.1
"""The maximum difference between the kernel's two measurements of CPU time, in seconds."""

_LATE = (
    "torch._decomp.decompositions_for_jvp",  # forward-mode derivatives
    "torch.masked.maskedtensor._ops_refs",
    "torch.nested._internal.ops",
    "torch.nested._internal.sdpa",
    "torch.utils.flop_counter",
    "torch._inductor.compiler_bisector",  # derivatives of functions in torch 2.6
)
"""Modules with forbidden functions that torch loads at first use."""


def main(channel: socket.socket) -> None:
    """Serve requests until the connection closes.

    Args:
        channel: the connection to the trusted process. The first message on it contains `memory` in
            bytes, `cpu_seconds`, `secret` paths and `wanted` paths.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.chdir("/")
    keep_access_times()
    prepare_torch()
    removable()
    server = _configured_server(channel)
    hide_from_debuggers()
    _freeze()
    server.run()


def _configured_server(channel: socket.socket) -> PreforkServer:
    """Read the settings, and return a server with these settings.

    Every worker inherits a copy of this process's frames. The settings are local variables of this
    function, which returns before a worker is forked, so that no inherited frame contains them.
    """
    message = channel.recv(_SETTINGS)
    if not message:
        os._exit(0)  # the trusted process has exited
    config = json.loads(message)
    paths = readable_paths(config["secret"], config["wanted"])
    readable = [*config["wanted"], os.__file__, torch.__file__]
    own_uid = may_become(pick_uid(os.getpid()), readable)
    return PreforkServer(channel, config["memory"], config["cpu_seconds"], paths, own_uid)


def load_compiler() -> None:
    """Load the modules of torch's compiler, which takes nearly as long as loading torch.

    The meta device and the optimizers need these modules, even if nothing is compiled. A worker
    could not load them later, because they contain forbidden functions. For the same reason,
    this function loads the modules in `_LATE`, which takes a tenth of a second.
    """
    torch.ones(2, 2, device="meta", dtype=torch.bool).tril()
    with suppress(Exception):  # not every version of torch has this module
        from torch._subclasses.fake_tensor import FakeTensorMode

        FakeTensorMode().from_tensor(torch.ones(1))  # in torch 2.6, this loads many more modules
    for name in _LATE:
        # Some versions of torch lack some of these modules, and some modules need the user's name.
        with suppress(Exception):
            importlib.import_module(name)
    removable()


class PreforkServer:
    """Forks workers and further prefork servers on request.

    Args:
        channel: the connection on which requests arrive.
        memory: bytes that a worker may use in addition to the memory that it has after the fork.
        cpu_seconds: the limit of a worker's CPU time in seconds.
        paths: files and folders that workers may read.
        own_uid: whether each worker gets a separate user id.
    """

    def __init__(
        self,
        channel: socket.socket,
        memory: int,
        cpu_seconds: int,
        paths: tuple[str, ...],
        own_uid: bool,
    ) -> None:
        self._channel = channel
        self._memory = memory
        self._cpu_seconds = cpu_seconds
        self._paths = paths
        self._own_uid = own_uid
        self._workers: set[int] = set()
        self._servers: set[int] = set()
        self._called: list[str] = []
        self._run_tests: recording.RunOrder = recording.call_functions

    def run(self) -> NoReturn:
        """Report readiness, respond to requests until the connection closes, then exit."""
        try:
            self._channel.send(json.dumps({"ready": True, "process": os.getpid()}).encode())
            self.serve()
        except ConnectionError:
            pass  # the trusted process was killed
        except Exception as error:
            print(f"prefork server: {error!r}", file=sys.stderr)
        self.end_workers()
        # Skip the exit handlers of torch's libraries, as some of them print.
        os._exit(0)

    def serve(self) -> None:
        """Respond to requests until the connection closes."""
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._channel, _MESSAGE, 4)
            if not message:
                return
            request = json.loads(message)
            try:
                response = self._carry_out(request, descriptors)
            finally:
                for passed_on in descriptors:
                    os.close(passed_on)
            self._channel.send(json.dumps(response | {"id": request["id"]}).encode())

    def end_workers(self) -> None:
        """Kill all workers, and wait until the forked servers have exited.

        These servers exit because the trusted process closes their connections.
        """
        while self._workers:
            end(self._workers.pop(), 0.0)
        while self._servers:
            os.waitpid(self._servers.pop(), 0)

    def _carry_out(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        if request["do"] == "prepare":
            self._servers.add(self._fork_server(request, *descriptors))
            return {}
        if request["do"] == "fork":
            process = self._fork_worker(*descriptors)
            self._workers.add(process)
            return {"worker": process}
        process = request["worker"]
        if process not in self._workers:
            return {"code": 0, "killed": True, "out_of_time": False}
        self._workers.remove(process)
        code, killed, seconds = end(process, request["grace"])
        out_of_time = seconds > self._cpu_seconds - _ROUNDING
        return {"code": code, "killed": killed, "out_of_time": out_of_time}

    def _fork_server(self, request: dict[str, Any], channel: int) -> int:
        """Fork a server, prepare it as requested, and return its process id.

        Args:
            request: contains `forbidden`, the functions to remove; `compiler`, whether to load
                torch's compiler; and `load`, the arguments of `recording.load_tests`, or None.
            channel: the descriptor on which the new server receives requests.
        """
        if request["load"]:
            recording.load_code(request["load"][0])  # all servers with tests need it
        parent = os.getpid()
        process = os.fork()
        if process:
            return process
        # This is the new server, which must never return into the loop of the old server.
        try:
            die_with(parent)
            self._channel.close()
            self._channel = socket.socket(fileno=channel)
            self._workers.clear()
            self._servers.clear()
            if request["compiler"]:
                load_compiler()
            if request["load"]:
                self._run_tests = recording.load_tests(*request["load"])
                hide_own_modules()
            if request["forbidden"]:
                remove(request["forbidden"], self._called)
            del request
            _freeze()
            self.run()
        finally:
            os._exit(1)

    def _fork_worker(self, channel: int) -> int:
        parent = os.getpid()
        process = os.fork()
        if process:
            return process
        # This is the worker, which must never return into the loop of the server.
        try:
            hide_own_modules()
            kept = socket.socket(fileno=keep_only(channel))
            self._confine(kept, parent)
            recording.main(kept, self._called, self._run_tests)
        finally:
            os._exit(1)

    def _confine(self, channel: socket.socket, parent: int) -> None:
        """Confine this process before it reads student code.

        Send the error if confining fails, and an empty message otherwise.
        """
        try:
            os.setsid()
            uid = pick_uid(os.getpid()) if self._own_uid else None
            confine(self._memory, self._cpu_seconds, uid, self._paths, parent)
        except Exception as error:
            send_frame(channel, repr(error).encode())
            raise
        send_frame(channel, b"")


def _freeze() -> None:
    """Exclude existing objects from garbage collection, so that forks share the objects' memory."""
    gc.freeze()
    gc.enable()
