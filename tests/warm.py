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
from typing import Self

# The process that waits. It has one thread, and leaves the loop in each child, which then runs its
# command and ends as any interpreter does.
_WAITS = """
import gc, importlib, json, os, runpy, socket, sys

for name in sys.argv[2:]:
    importlib.import_module(name)
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
    """Runs Python commands in forked processes. As a context manager, it ends the process with
    torch.

    If a process can't be forked safely, each command is a fresh interpreter.

    Args:
        loaded: the modules to load once, before commands run.
    """

    def __init__(self, *loaded: str) -> None:
        self._loaded = loaded or ("torch",)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Return the object; the first command starts the process with torch."""
        return self

    def __exit__(self, *exception: object) -> None:
        """End the process with torch, if it was started."""
        if self._process is not None:
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
        environment = dict(os.environ if env is None else env)
        if sys.platform != "linux":
            command = [sys.executable, *arguments]
            return subprocess.run(
                command,
                cwd=cwd,
                env=environment,
                input=typed,
                capture_output=True,
                encoding="utf-8",
            )
        with tempfile.TemporaryDirectory(prefix="warm-") as folder:
            files = [Path(folder, name) for name in ("typed", "printed", "complaints")]
            for file in files:
                file.write_text(typed if file.name == "typed" else "", encoding="utf-8")
            asked = {"arguments": arguments, "folder": str(cwd), "environment": environment}
            status = self._ask(asked | {"files": list(map(str, files))})
            printed, complaints = (file.read_text(encoding="utf-8") for file in files[1:])
        return subprocess.CompletedProcess(list(arguments), status, printed, complaints)

    def _ask(self, request: dict[str, object]) -> int:
        if self._process is None:
            self._start()
        self._channel.sendall(json.dumps(request).encode() + b"\n")
        return int(self._answers.readline())

    def _start(self) -> None:
        self._channel, theirs = socket.socketpair()
        self._answers = self._channel.makefile("rb")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _WAITS, str(theirs.fileno()), *self._loaded],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
