"""A trusted process and its prefork server are forks of one clean interpreter.

The prefork server and its workers never contain data or modules of the trusted process.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.course import COURSE_VARIABLE
from grader.sandbox.starting import TemplateProcess, library_folders, secret_paths
from tests.processes import memory_of, parent_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the test needs fork and /proc")

ROOT = Path(__file__).resolve().parents[3]

LOOK = """
import gc, os, sys, threading
import torch

def modules():
    return sorted(sys.modules)

def threads():
    return threading.active_count()

def open_files():
    found = []
    for number in range(64):
        try:
            os.fstat(number)
            found.append(number)
        except OSError:
            pass
    return found

def environment():
    return [*os.environ, *(name for name in ("TEMPLATE_CANARY",) if os.getenv(name))]

def arguments():
    return [*sys.argv, *sys.path]

def texts_that_begin(begin):
    frames, frame = [], sys._getframe()
    while frame is not None:
        frames.append(dict(frame.f_locals))
        frame = frame.f_back
    found = []
    for thing in [*gc.get_objects(), *frames]:
        if isinstance(thing, dict):
            found += [value for value in list(thing.values()) if isinstance(value, str)]
    return sorted({text for text in found if text.startswith(begin) and len(text) > len(begin)})
"""

# Functions that trusted processes call in these tests, after importing them from a file.
TARGETS = """
import os, sys, tempfile
from grader.sandbox.sandbox import Sandbox
from tests.grader.sandbox.asking import Asked

def look(connection, prefork_server, canary, source):
    names = ("modules", "threads", "open_files", "environment", "arguments")
    expressions = [*(f"problem.{name}()" for name in names), "problem.texts_that_begin('cana')"]
    with Sandbox(call_seconds=60, prefork_server=prefork_server) as sandbox:
        with Asked(sandbox, source, *expressions) as asked:
            found = {name: asked.next() for name in (*names, "texts")}
        found["own threads"] = len(os.listdir("/proc/self/task"))
        found["own canary"] = os.environ["TEMPLATE_CANARY"]
        found["own temporary folder"] = tempfile.gettempdir()
        found["own modules"] = sorted(sys.modules)
        found["own word"] = canary
        connection.send(found)

def hold(connection, prefork_server, canary):
    with Sandbox(prefork_server=prefork_server) as sandbox:
        connection.send((os.getpid(), *sandbox._workers.processes))
        try:
            connection.recv()
        except EOFError:
            pass

def wait(connection, prefork_server):
    connection.send(os.getpid())
    try:
        connection.recv()
    except EOFError:
        os._exit(7)
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemplateProcess]:
    folder = tmp_path_factory.mktemp("trusted")
    (folder / "targets_of_template.py").write_text(TARGETS)
    with pytest.MonkeyPatch.context() as patch, TemplateProcess() as process:
        patch.setattr(sys, "path", [*sys.path, str(folder)])
        patch.setenv("TEMPLATE_CANARY", "canary-in-the-environment")
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(sys, "argv", [*sys.argv, "canary-as-an-argument"])
        yield process


def look(template: TemplateProcess, canary: str) -> dict[str, Any]:
    """Pass `canary` to a trusted process, and return data from that process and from a worker."""
    process, connection = template.start("targets_of_template:look", canary, LOOK)
    with connection:
        state: dict[str, Any] = connection.recv()
    process.join(60)
    assert process.exitcode == 0
    return state


@pytest.mark.slow
def test_a_worker_has_no_data_of_its_trusted_process(template: TemplateProcess) -> None:
    """A worker contains no data of its trusted process, nor of processes that started earlier."""
    waiting, connection = template.start("targets_of_template:wait")
    with connection:
        connection.recv()
        for canary in ("canary-of-the-second", "canary-of-the-third"):
            state = look(template, canary)
            assert state["own word"] == canary
            assert state["own canary"] == "canary-in-the-environment"
            assert state["own temporary folder"] == os.environ["TMPDIR"]
            assert "targets_of_template" in state["own modules"]
            assert state["own threads"] == state["threads"] == 1
            assert state["texts"] == []
            assert state["environment"] == []
            assert not [entry for entry in state["arguments"] if "canary" in entry]
            assert state["open_files"] == [0, 1, 2, 3]
            own = ("grader", "pytest", "targets_of_template")
            assert not [name for name in state["modules"] if name.partition(".")[0] in own]
            assert "torch" in state["modules"]
    waiting.join(60)
    assert waiting.exitcode == 7


@pytest.mark.slow
def test_a_killed_template_process_is_replaced(template: TemplateProcess) -> None:
    """A new template process is started, and the forks of the killed process end."""
    process, connection = template.start("targets_of_template:wait")
    with connection:
        pid = connection.recv()
        os.kill(parent_of(pid), signal.SIGKILL)
        with pytest.raises((EOFError, ConnectionResetError)):
            connection.recv()
    assert not process.is_alive()
    another, connection = template.start("targets_of_template:wait")
    with connection:
        assert connection.recv() != pid
    another.join(60)
    assert another.exitcode == 7


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can read another process's memory")
@pytest.mark.slow
def test_a_prefork_server_has_no_secrets_in_memory(
    template: TemplateProcess,
) -> None:
    """Every worker starts with a copy of the prefork server's memory."""
    canary = "-".join(["canary", "told", str(os.getpid())]).encode()
    process, connection = template.start("targets_of_template:hold", canary.decode())
    with connection:
        pid, prefork_server = connection.recv()
        trusted, memory = memory_of(pid), memory_of(prefork_server)
    process.join(60)
    assert canary in trusted
    assert b"grader.sandbox" in memory  # shows that the search works
    for secret in (canary, b"canary-in-the-" + b"environment", b"--- hidden tests ---"):
        assert secret not in memory


def test_libraries_are_found_in_the_order_of_the_main_process(tmp_path, monkeypatch):
    """With layered environments, two folders may contain torch. The first on the path is used."""
    folders = [tmp_path / "b", tmp_path / "a", tmp_path / "c"]
    for folder, names in zip(folders, (["torch"], ["torch", "numpy"], ["msgspec"]), strict=True):
        for name in names:
            (folder / name).mkdir(parents=True)
            (folder / name / "__init__.py").touch()
            monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "path", [*map(str, folders)])
    assert library_folders() == [str(folder.resolve()) for folder in folders]


def test_a_course_elsewhere_is_secret_as_well(tmp_path, monkeypatch):
    """The solutions of a course are secret, wherever its folder is."""
    monkeypatch.setenv(COURSE_VARIABLE, str(tmp_path))
    assert {str(tmp_path / "solutions"), str(ROOT / "solutions")} <= {*secret_paths()}
