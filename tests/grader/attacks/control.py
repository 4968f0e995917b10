"""Run attacks without a sandbox, each in a separate process and folder.

The argument is a folder with one folder per attack. Each of these contains `problem.py` and
`kind.txt`, which names one of three common ways to grade. For `allclose` and `equal`, the process
runs pytest, which compares with `torch.allclose` or `==`. For `pipe`, the process writes its result
to a pipe. The program prints one line of JSON with the exit status and output of each process.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import resource
import signal
import sys
from pathlib import Path

import pytest
import torch

TEST = """
import torch
from problem import double

def test_double():
    torch.manual_seed(0)
    x = torch.randn(1)
    expected = 2 * x
    assert {comparison}
"""
COMPARISONS = {
    "allclose": "torch.allclose(double(x), expected)",
    "equal": "double(x) == expected",
}
LIMIT = 30


def run(folder: Path) -> dict[str, object]:
    """Run one attack, and return its exit status, its output and its result in the pipe."""
    kind = (folder / "kind.txt").read_text()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            prepare(folder)
            status = in_pytest(kind) if kind in COMPARISONS else in_pipe(writer)
            sys.stdout.flush()
            atexit._run_exitfuncs()
        except BaseException:
            status = 99
        os._exit(status)
    os.close(writer)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    result = os.read(reader, 1000).decode() if kind == "pipe" else ""
    os.close(reader)
    printed = (folder / "printed.txt").read_text(errors="replace")
    return {"status": status, "printed": printed, "result": result}


def prepare(folder: Path) -> None:
    """Move the current process to its own folder and session, and set its limits."""
    os.setsid()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    printed = os.open("printed.txt", os.O_WRONLY | os.O_CREAT)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    signal.alarm(LIMIT)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + (2 << 30),) * 2)


def in_pytest(kind: str) -> int:
    """Grade with pytest and tests that import the student's module, as is common in courses."""
    Path("test_problem.py").write_text(TEST.format(comparison=COMPARISONS[kind]))
    options = [
        "-q",
        "-s",
        "--rootdir=.",
        "-pno:grader",
        "-pno:cacheprovider",
        "-pno:unraisableexception",
    ]
    return int(pytest.main([*options, "test_problem.py"]))


def in_pipe(writer: int) -> int:
    """Grade in this process, and write the results to a pipe as one line of JSON."""
    from problem import double

    x = torch.ones(1)
    status = "passed" if torch.allclose(double(x), 2 * x) else "failed"
    os.write(writer, json.dumps({"status": status}).encode() + b"\n")
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # as each run of pytest collects garbage several times
    folders = sorted(Path(sys.argv[1]).iterdir())
    print(json.dumps({folder.name: run(folder) for folder in folders}))
