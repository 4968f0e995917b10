"""Run Python commands in processes that are forked from a process with torch loaded.

Loading torch takes seconds, which is much longer than most commands take. The forked processes may
have more modules than a fresh interpreter, so don't use them to test which modules a command loads.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from grader.sandbox.starting import TemplateProcess

ROOT = Path(__file__).resolve().parents[1]
HANG_SECONDS = 300


class WarmPython:
    """Runs Python commands in forks of an interpreter.

    Args:
        template: the process to fork from.
    """

    def __init__(self, template: TemplateProcess) -> None:
        self._template = template

    def run(
        self,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        typed: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run `python *arguments` in a fork, and return its exit status and output.

        Args:
            arguments: `-m` and a module, `-c` and code, or a script, followed by its arguments.
            cwd: the folder to run the command in.
            env: the command's environment. The default is this process's environment.
            typed: the text of the standard input.
        """
        environment = dict(os.environ if env is None else env)
        with tempfile.TemporaryDirectory(prefix="warm-") as folder:
            files = [Path(folder, name) for name in ("typed", "printed", "complaints")]
            for file in files:
                file.write_text(typed if file.name == "typed" else "", encoding="utf-8")
            request = arguments, str(cwd), environment, [*map(str, files)]
            process, connection = self._template.start(
                "tests.warm:run_command", *request, with_prefork_server=False
            )
            with connection:
                process.join(HANG_SECONDS)
            printed, complaints = (file.read_text(encoding="utf-8") for file in files[1:])
        return subprocess.CompletedProcess(list(arguments), process.exitcode, printed, complaints)


def run_command(
    connection: object,
    prefork_server: object,
    arguments: tuple[str, ...],
    folder: str,
    environment: dict[str, str],
    files: list[str],
) -> NoReturn:
    """Run a Python command in this process, and exit with its status."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("grader", "tests")]:
        del sys.modules[name]  # so that the command may import other copies of these packages
    os.chdir(folder)
    for number, path in enumerate(files):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    libraries = [path for path in sys.path if path.startswith((sys.prefix, sys.base_prefix))]
    own = [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    script = os.path.dirname(os.path.abspath(arguments[0]))
    first = {"-m": os.getcwd(), "-c": ""}.get(arguments[0], script)
    sys.path[:] = [first, *own, *libraries, str(ROOT)]
    status: Any = 0
    try:
        _run(*arguments)
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(1 if isinstance(status, str) else status or 0)


def _run(kind: str, *words: str) -> None:
    sys.argv[:] = [kind, *words]
    if kind == "-m":
        sys.argv[:] = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv[:] = ["-c", *words[1:]]
        exec(compile(words[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        runpy.run_path(kind, run_name="__main__")
