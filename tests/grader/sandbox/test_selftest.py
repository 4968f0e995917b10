"""The grader refuses a sandbox in which an attack of the self-test succeeds."""

import sys

import pytest

from grader.sandbox import selftest
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.starting import SandboxError
from tests.lent import lent_prefork_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")

SUCCEEDS = "\ndef read_nothing(path):\n    return path\n"
CANNOT_LOAD = "import nothing_of_that_name\n"
ENDS_ITS_PROCESS = "\ndef end(path):\n    os._exit(0)\n"


@pytest.mark.parametrize(
    ("source", "names", "reason"),
    [
        (SUCCEEDS, ["read_a_file", "read_nothing", "become_root"], r"self-test \(read nothing\)"),
        (CANNOT_LOAD, ["read_a_file"], r"self-test \(Your code"),
        (ENDS_ITS_PROCESS, ["read_a_file", "end"], r"self-test \(Your code"),
    ],
)
def test_a_sandbox_that_fails_the_self_test_is_refused(origin, monkeypatch, source, names, reason):
    monkeypatch.setattr(selftest, "_ATTACKS", selftest._ATTACKS + source)
    monkeypatch.setattr(selftest, "_NAMES", names)
    sandbox = Sandbox(prefork_server=lent_prefork_server(origin))
    with pytest.raises(SandboxError, match=reason):
        sandbox.__enter__()
