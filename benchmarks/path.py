"""How long the path of a call across the boundary is: calls, files and changes of file.

Counted are the functions of this package that run on both sides, from the test's line until it has
its answer: how many calls there are, in how many files, and how often a call is in another file
than the one before it. So much has to be held in the head by who follows one call.

Run it with `python benchmarks/path.py`; `--list` prints the calls one by one. Linux only.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import grader
from grader.boundary.connection import SubmissionBudget
from grader.boundary.proxy.caller import LoadedFile, RemoteProblem
from grader.boundary.spawn import WorkerEnding, WorkerProcess, Workers, shared_memory
from grader.boundary.worker import serving
from grader.course import own_course

PACKAGE = str(Path(grader.__file__).parent) + os.sep
_LENGTH = 8


def main() -> None:
    """Print the path of three calls."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print each function that is called")
    show_all = parser.parse_args().list
    x, embedded = torch.randn(2, 3), torch.randn(2, 3, 12)
    for problem, name, make in (
        ("01-softmax", "softmax(x)", lambda code: lambda: code.softmax(x)),
        ("05-multi-head-attention", "MultiHeadAttention(12, 2)", _construction),
        ("05-multi-head-attention", "module(x)", lambda code: _module(code, embedded)),
    ):
        with Recorded() as workers:
            report(name, workers.path(problem, make), show_all)


def _construction(code: Any) -> Callable[[], object]:
    return lambda: code.MultiHeadAttention(12, 2)


def _module(code: Any, x: torch.Tensor) -> Callable[[], object]:
    module = code.MultiHeadAttention(12, 2)
    module(x)  # the first call brings the weights
    return lambda: module(x)


def report(name: str, calls: list[tuple[str, str]], show_all: bool) -> None:
    """Print what a path comes to."""
    files = [file for file, _ in calls]
    changes = [number for number in range(1, len(files)) if files[number - 1] != files[number]]
    back = sum(n + 1 < len(files) and files[n - 1] == files[n + 1] for n in changes)
    print(
        f"{name:26} {len(calls):4} calls in {len(set(files)):2} files, {len(changes):3} changes of "
        f"file, {back} of them to a file and back"
    )
    for file, function in calls if show_all else ():
        print(f"    {file:40} {function}")


class Recorded(Workers):
    """Workers that are forks of this process and write down what they call; for this alone."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1 << 20)  # whether to write down, and what was

    def __enter__(self) -> Recorded:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()

    def path(self, problem: str, make: Callable[[Any], Callable[[], object]]) -> Any:
        """Return file and function of each call on the path of a call, on both sides in order."""
        course = own_course()
        source = course.solution(course.select([problem])[0]).read_bytes()
        code = RemoteProblem(LoadedFile(self, source, (), SubmissionBudget(60.0, 600.0)))
        call = make(code)
        call()
        with self._written_down() as here:
            call()
        code.close()
        length = int.from_bytes(self._memory[1 : 1 + _LENGTH], "big")
        there = json.loads(self._memory[1 + _LENGTH : 1 + _LENGTH + length])
        sent = max(n for n, (_, function) in enumerate(here) if function == "send")
        return [*here[: sent + 1], *map(tuple, there), *here[sent + 1 :]]

    @contextmanager
    def _written_down(self) -> Iterator[list[tuple[str, str]]]:
        calls: list[tuple[str, str]] = []
        self._memory[0] = 1
        sys.setprofile(profile(calls))
        try:
            yield calls
        finally:
            sys.setprofile(None)
            self._memory[0] = 0

    def spawn(self, forbidden: tuple[str, ...] = (), *sources: bytes) -> WorkerProcess:
        """Fork a worker."""
        ours, theirs = socket.socketpair()
        with shared_memory() as (memory, _):
            process = os.fork()
            if not process:
                ours.close()
                self._serve(theirs, memory)
        theirs.close()
        return _Forked(process, ours, memory)

    def _serve(self, channel: socket.socket, memory: Any) -> None:
        calls: list[tuple[str, str]] = []
        write_down, flag = profile(calls), self._memory

        def when_asked(frame: FrameType, event: str, argument: object) -> None:
            if flag[0]:
                write_down(frame, event, argument)

        sys.setprofile(when_asked)
        try:
            serving.main(channel, memory)
        finally:
            sys.setprofile(None)
            text = json.dumps(calls).encode()
            flag[1 : 1 + _LENGTH + len(text)] = len(text).to_bytes(_LENGTH, "big") + text
            os._exit(0)

    def close(self) -> None:
        """Do nothing: a worker is ended by itself."""


class _Forked(WorkerProcess):
    def __init__(self, pid: int, channel: socket.socket, memory: Any) -> None:
        self.pid, self.channel, self.memory = pid, channel, memory

    def end(self, grace: float = 0.0) -> WorkerEnding:
        self.channel.close()
        self.memory.close()
        return WorkerEnding(os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]))


def profile(calls: list[tuple[str, str]]) -> Callable[[FrameType, str, object], None]:
    """Return what writes down calls of functions of this package."""

    def write_down(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(PACKAGE):
            calls.append((code.co_filename.removeprefix(PACKAGE), code.co_qualname))

    return write_down


if __name__ == "__main__":
    main()
