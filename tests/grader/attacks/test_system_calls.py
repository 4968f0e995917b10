"""Attacks by system calls through ctypes, against which only the sandbox protects the system."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grader.course import Course
from grader.sandbox.starting import TemplateProcess
from tests.grader.attacks.conftest import Attacked, Target, start_prefork_servers
from tests.lent import lent_sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

ATTACKS = (Path(__file__).parent / "system_calls.py").read_text(encoding="utf-8")
SOLUTION = "import torch\n\ndef double(x): return x + x\n"
REFUSED = "PermissionError"
NAMES = [
    "make_a_socket",
    "read_a_file",
    "write_a_file",
    "start_a_process",
    "run_a_program",
    "kill_another",
    "trace_another",
    "read_anothers_memory",
]


def source(target: Target, attack: str) -> bytes:
    """Return the solution, with an attack in each of its functions."""
    return target.filled_in(f"{SOLUTION}\n{ATTACKS}\nattack_first({attack}, ['double'])\n").encode()


@pytest.fixture(scope="module")
def permitted(
    tmp_path_factory: pytest.TempPathFactory,
    new_course: Callable[[Path], Course],
    origin: TemplateProcess,
) -> Iterator[Attacked]:
    """Return an object that grades attacks in a small course that forbids no functions."""
    course = new_course(tmp_path_factory.mktemp("permitted") / "course")
    manifest = course.root / "course.toml"
    text = manifest.read_text(encoding="utf-8")
    manifest.write_text(text.replace('forbidden = ["softmax"]', "forbidden = []"), "utf-8")
    with lent_sandbox(origin, call_seconds=10, memory_mb=256) as sandbox:
        yield Attacked(course, sandbox, 10)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_sandbox_refuses_system_calls(
    permitted: Attacked, target: Target, listener: socket.socket, name: str
) -> None:
    start_prefork_servers(permitted, source(target, name))
    processes, files = permitted.processes(), target.tree()
    result = permitted(source(target, name))
    assert permitted.processes() == processes, "a process was left or killed"
    assert target.tree() == files
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert result.points == 0
    for test in result.tests:
        assert test.status in ("error", "failed")  # failed: the test expects another exception
        assert test.hidden or re.search(REFUSED, test.message), test.message
    assert permitted(SOLUTION.encode()).passed, "the next file, a correct one, failed"


WITHOUT = """
import os, sys
scope = {}
exec(compile(sys.stdin.read(), "attacks.py", "exec"), scope)
for name in sys.argv[1:]:
    try:
        scope[name]()
        print(name)
    except OSError as error:
        pass
"""


def test_without_a_sandbox_the_system_calls_succeed(target: Target) -> None:
    """Without a sandbox the same attacks create sockets, files and processes."""
    harmless = ["make_a_socket", "read_a_file", "start_a_process"]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *harmless],
        input=target.filled_in(ATTACKS),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )
    assert done.stdout.split() == harmless
