"""Forbidden actions of a file while it is loaded are recorded, even if the file hides them."""

import json

import pytest

from grader.run.encoding import BadRecord
from grader.run.orders import LoadReport
from grader.sandbox.attempts import sentences_on
from grader.sandbox.frames import ProtocolError
from tests.grader.sandbox.asking import Asked


@pytest.fixture
def tried(sandbox):
    """Return a function that loads a file and returns the forbidden actions that it tried."""

    def load(source):
        with Asked(sandbox, source) as asked:
            return sentences_on(asked.attempts)

    return load


QUIET = [
    "import torch, json, math, dataclasses, typing, numpy\nfrom torch import nn\n",
    "import torch\n@torch.jit.script\ndef f(x): return x\n",
    "for name in ('/dev/null', '/nothing', 'data.txt'):\n"
    "    try: open(name).close()\n    except OSError: pass\n",
    "try: import matplotlib.pyplot\nexcept Exception: pass\n",
]


@pytest.mark.slow
@pytest.mark.parametrize("source", QUIET)
def test_allowed_calls_and_calls_of_torch_are_not_reported(tried, source):
    assert tried(source) == []


ATTEMPTS = {
    "open('/etc/passwd')": "read '/etc/passwd'",
    "Path('/etc/shadow').read_text()": "read '/etc/shadow'",
    "os.listdir('/')": "read '/'",
    "open('\\x1b[2J' + 'y' * 500, 'w')": "write to '\N{REPLACEMENT CHARACTER}[2J" + "y" * 96 + "'",
    "exec(\"open('x', 'a')\")": "write to 'x'",
    "os.mkdir('/made')": "write to '/made'",
    "os.kill(1, 9)": "send a signal to a process",
    "os.fork()": "start another process",
    "subprocess.run(['ls'])": "start the program 'ls'",
    "socket.socket()": "use the network",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_forbidden_attempts_are_reported(tried, attempt):
    found = tried(
        "import os, socket, subprocess\nfrom pathlib import Path\n"
        f"try:\n    for _ in range(2): {attempt}\nexcept BaseException: pass\n"
    )
    assert found == [f"While it was loaded, problem.py tried to {ATTEMPTS[attempt]}."]


def test_only_a_limited_number_is_reported(tried):
    source = "for i in range(2000):\n    try: open(f'f{i}', 'w')\n    except OSError: pass\n"
    assert len(tried(source)) == 5


def test_later_attempts_are_reported_separately(sandbox):
    with Asked(sandbox, "def f(): open('/etc/passwd')", "problem.f()") as asked:
        assert asked.next()[0] == "PermissionError"
        assert asked.attempts == []


@pytest.mark.parametrize(
    "packed", [None, [["read"]], [["dance", "x"]], [["read", "x"]] * 6, [["read", "x" * 101]]]
)
def test_invalid_attempts_are_refused(packed):
    with pytest.raises((BadRecord, ProtocolError)):
        sentences_on(LoadReport.read(json.dumps({"attempts": packed}).encode()).attempts)
