"""The same imports and file accesses are forbidden in grading and in a local run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from grader.course import Course
from grader.result import ProblemResult, Status

Run = Callable[..., ProblemResult]
StudentPytest = Callable[..., object]

DOUBLE = "\ndef double(x): return x + x\n"


def message(result: ProblemResult) -> str:
    test = result.tests[0]
    assert test.status is Status.ERROR, test
    return " ".join(test.message.split())


REFUSED = {
    "open": "open('out.txt', 'w')" + DOUBLE,
    "pathlib": "from pathlib import Path; Path('out.txt').write_text('x')" + DOUBLE,
    "os": "import os; os.open('out.txt', os.O_CREAT)" + DOUBLE,
    "numpy": "import numpy; numpy.savetxt('out.txt', [1])" + DOUBLE,
    "in a call": "def double(x):\n    open('out.txt', 'a')\n    return x + x",
    "pool": "from concurrent.futures import ThreadPoolExecutor\n"
    "def double(x): return [*ThreadPoolExecutor(2).map(lambda each: 2 * each, [x])][0]",
    "thread": "import threading\nthread = threading.Thread(target=print)\nthread.start()" + DOUBLE,
    "socket": "import socket; socket.socket()" + DOUBLE,
    "name of a host": "import socket; socket.gethostbyname('localhost')" + DOUBLE,
    "url": "from urllib.request import urlopen; urlopen('http://a.invalid/')" + DOUBLE,
    "subprocess": "import subprocess; subprocess.run(['true'])" + DOUBLE,
    "system": "import os; os.system('true')" + DOUBLE,
}


@pytest.mark.parametrize("name", REFUSED)
def test_files_threads_network_and_programs_are_refused(
    run: Run, snapshot: SnapshotAssertion, name: str
) -> None:
    assert message(run(REFUSED[name])).partition(" problem.py:")[0] == snapshot
    assert not Path("out.txt").exists()


def test_a_students_file_is_not_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "weights.txt").write_text("2")
    text = message(run(f"factor = int(open({str(tmp_path / 'weights.txt')!r}).read())" + DOUBLE))
    assert "it is graded without files" in text


def test_a_file_next_to_problem_py_is_not_imported(run: Run, small_course: Course) -> None:
    run("x = 1")
    (small_course.root / "handed in/my_helper.py").write_text("def double(x): return x + x")
    text = message(run("from my_helper import double"))
    assert "problem.py can't import my_helper: it is graded alone." in text


def test_a_package_may_import_anything(run: Run, tmp_path: Path) -> None:
    """For example, torch writes a module into a temporary folder when it loads its compiler."""
    (tmp_path / "written_by_a_package.py").write_text("two = 2")
    lines = f"import pkgutil, sys\nsys.path.insert(0, {str(tmp_path)!r})\n"
    assert run(lines + "pkgutil.resolve_name('written_by_a_package:two')" + DOUBLE).passed


@pytest.mark.parametrize(
    "source",
    [
        "import json, csv, numpy, torch, wave",
        "import random, tempfile",
        "import warnings; warnings.warn('look')",
        "import inspect\ndef double(x): return x + x\ninspect.getsource(double)",
    ],
)
def test_allowed_imports_work_at_home_too(run: Run, source: str) -> None:
    assert run(source + DOUBLE).passed


@pytest.mark.parametrize("how", ["@torch.compile", "@torch.compile(dynamic=True)"])
def test_compiled_code_runs_uncompiled(run: Run, how: str) -> None:
    assert run(f"import torch\n{how}\ndef double(x): return x + x").passed


@pytest.mark.slow
def test_loading_a_file_takes_no_time_from_a_test(run: Run) -> None:
    wait = "import time\ntime.sleep(0.7)"
    assert run(f"{wait}\ndef double(x):\n    {wait[12:]}\n    return x + x", timeout=1).passed
