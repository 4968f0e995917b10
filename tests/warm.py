"""Run Python commands in processes that are forked from a process with torch loaded.

Loading torch takes seconds, which is much longer than most commands take. The forked processes may
have more modules than a fresh interpreter, so don't use them to test which modules a command loads.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

# The process that waits. It has one thread, and leaves the loop in each child, which then runs its
# command and ends as any interpreter does.
_WAITS = """
import gc, json, os, runpy, socket, sys
import torch

gc.collect()
gc.freeze()  # so that few pages change in a process that is forked

waits = socket.socket(fileno=int(sys.argv[1]))
requests = waits.makefile("rb")
child = None
while child != 0 and (line := requests.readline()):
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        waits.sendall(b"%d\\n" % os.waitstatus_to_exitcode(status))
if child != 0:
    sys.exit()
requests.close()
waits.close()
asked = json.loads(line)
os.chdir(asked["folder"])
for number, path in enumerate(asked["files"]):
    opened = os.open(path, os.O_RDWR)
    os.dup2(opened, number)
    os.close(opened)
os.environ.clear()
os.environ.update(asked["environment"])
sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
kind, *sys.argv = asked["arguments"]
paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
first = {"-m": os.getcwd(), "-c": ""}.get(kind, os.path.dirname(os.path.abspath(kind)))
sys.path[:1] = [first, *paths]
if kind == "-m":
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
elif kind == "-c":
    code, sys.argv[0] = sys.argv[0], "-c"
    exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
else:
    sys.argv.insert(0, kind)
    runpy.run_path(kind, run_name="__main__")
"""


class WarmPython:
    """Run Python commands in processes that are forked from one with torch loaded, on Linux."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        self._answers = self._channel.makefile("rb")
        command = [sys.executable, "-c", _WAITS, str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )

    def close(self) -> None:
        """End the process that waits."""
        self._answers.close()
        self._channel.close()
        self._process.wait()

    def run(
        self,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        typed: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command like `python *arguments`, and return its exit status and output.

        Args:
            arguments: `-m` and a module, `-c` and code, or a script; then its arguments.
            cwd: the folder to run it in.
            env: its environment; this process's by default.
            typed: its standard input.
        """
        with tempfile.TemporaryDirectory(prefix="warm-") as folder:
            files = [Path(folder, name) for name in ("typed", "printed", "complaints")]
            for file in files:
                file.write_text(typed if file.name == "typed" else "", encoding="utf-8")
            request = {
                "arguments": arguments,
                "folder": str(cwd),
                "environment": dict(os.environ if env is None else env),
                "files": [*map(str, files)],
            }
            self._channel.sendall(json.dumps(request).encode() + b"\n")
            status = int(self._answers.readline())
            printed, complaints = (file.read_text(encoding="utf-8") for file in files[1:])
        return subprocess.CompletedProcess(list(arguments), status, printed, complaints)
