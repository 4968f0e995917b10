"""Another course, in NumPy alone: checked, graded and audited, with torch and without.

Without torch, the commands run in an environment of their own that has every package but torch. All
processes that they start run there, too.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.course import Course, own_course

Run = Callable[..., subprocess.CompletedProcess[str]]

ROOT = own_course().root
COMMAND = "import sys; sys.argv[0] = 'grader'; from grader.cli import app; app()"
NO_TORCH = "import sys; sys.modules['torch'] = None"

MARKS = {
    "noor-haddad": ["10", "10", "20"],  # right
    "tomas-silva": ["0.67", "2", "2.67"],  # wrong: other axes, another dtype
    "vera-lund": ["0", "0", "0"],  # cheats
    "yuki-mori": ["0", "10", "10"],  # does not end
}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A copy of the second course."""
    root = tmp_path_factory.mktemp("second") / "numpy-course"
    shutil.copytree(ROOT / "examples/numpy-course", root)
    return Course(root)


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that finds all that this one finds, but no torch."""
    home = tmp_path_factory.mktemp("no torch") / "venv"
    venv.create(home, symlinks=True)
    paths = {"base": str(home), "platbase": str(home), "installed_base": str(home)}
    packages = Path(sysconfig.get_path("purelib", "venv", paths))
    lines = [str(ROOT), *{sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}, NO_TORCH]
    (packages / "all_but_torch.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Path(sysconfig.get_path("scripts", "venv", paths)) / Path(sys.executable).name


@pytest.fixture(scope="module")
def run(course: Course, without_torch: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a command on the course from a folder elsewhere, without torch."""
    return runner(without_torch, course, tmp_path_factory.mktemp("elsewhere"))


def runner(python: Path | str, course: Course, folder: Path) -> Run:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python), "-c", COMMAND, "--course", str(course.root), *words],
            cwd=folder,
            env=os.environ | {"COLUMNS": "120"},
            capture_output=True,
            text=True,
            encoding="utf-8",
        )

    return run


def grade(run: Run, course: Course, out: Path, *options: str) -> dict[str, list[str]]:
    """Grade the class and return the marks, and see that it was in a sandbox where there is one."""
    level = [] if sys.platform == "linux" else ["--isolation", "process"]
    submissions, limits = str(course.root / "class"), ["--timeout", "0.5", "--jobs", "1", *level]
    done = run("grade", submissions, "--out", str(out), *limits, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    if not level:
        kept = json.loads((out / "results/noor-haddad.json").read_text(encoding="utf-8"))
        assert kept["isolation"] == "sandbox"
    with (out / "gradebook.csv").open(encoding="utf-8") as file:
        return {row[0]: row[2:5] for row in [*csv.reader(file)][1:]}


def test_no_torch_is_there(without_torch: Path) -> None:
    done = subprocess.run([str(without_torch), "-c", "import numpy, torch"], capture_output=True)
    assert b"ModuleNotFoundError" in done.stderr
    assert b"torch" in done.stderr


@pytest.mark.slow
def test_a_student_meets_it_without_torch(run: Run) -> None:
    done = run("check", "--hidden")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "0 of 20 points" in done.stdout
    assert "Next: unit_rows (line 15) in problem.py" in done.stdout


@pytest.mark.slow
def test_a_right_submission_is_graded_without_torch(
    run: Run, course: Course, tmp_path: Path
) -> None:
    marks = grade(run, course, tmp_path / "out", "--only", "noor-haddad")
    assert marks["noor-haddad"] == MARKS["noor-haddad"]


@pytest.mark.slow
def test_the_class_is_graded_without_torch(run: Run, course: Course, tmp_path: Path) -> None:
    assert grade(run, course, tmp_path / "out") == MARKS
    assert_messages(tmp_path / "out")


@pytest.mark.slow
def test_the_class_is_graded_alike_with_torch(course: Course, tmp_path: Path) -> None:
    run = runner(sys.executable, course, tmp_path)
    assert grade(run, course, tmp_path / "out") == MARKS
    assert_messages(tmp_path / "out")


def assert_messages(out: Path) -> None:
    """Messages name a shape, a dtype, a row, and the mistakes."""
    told = (out / "feedback/tomas-silva.md").read_text(encoding="utf-8")
    assert "It returned an array of shape (3, 2), expected (2, 3)." in told
    assert "It returned an array of dtype float64, expected float32." in told
    assert "row [0]: got      [1.0000, 0.8944]" in told
    assert "as if each column is divided by its norm" in told
    assert "as if rows and columns are swapped" in told


@pytest.mark.slow
def test_the_audit_is_content_without_torch(run: Run, tmp_path: Path) -> None:
    """Stubs have no point, solutions all; each mistake is caught and named."""
    done = run("audit", "--jobs", "1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    last = " ".join(done.stdout.split("\n\n")[-1].split())
    assert (
        last == "caught 20 of 20 (by visible tests alone 20), named 20 of 20, wrongly failed 0 of 6"
    )


FORGES = """
import sys
import numpy as np
def right(x): return x + 1
def forge(kind):
    frame = sys._getframe()
    while "_send" not in frame.f_globals:
        frame = frame.f_back
    worker = frame.f_globals
    wire, send = worker["read_request"].__globals__, worker["_send"]
    def forged(channel, memory, response, tensors, id, released):
        if kind == "moved":
            response.moved = True
        elif kind == "graph":
            graph = wire["GraphForm"](0, 5, [wire["TensorValue"](0)])
            response.graphs, tensors = [graph], [np.zeros(3)]
        elif kind == "order":
            response.values, tensors = [wire["TensorValue"](0, [1, 0])], [np.zeros((3, 2))]
        elif kind == "form":
            response.values = [wire["FormValue"]("float32", [3])]
        elif kind == "device":
            response.values = [wire["DeviceValue"]("cpu")]
        elif kind == "module":
            empty = dict(settings=[], parameters=[], buffers=[], children=[])
            form = wire["ModuleForm"](name="A", stock="Linear", training=True, **empty)
            response.values = [wire["ModuleValue"](1, form)]
        send(channel, memory, response, tensors, id, released)
    worker["_send"] = forged
"""

FORGED = ["moved", "graph", "order", "form", "device", "module"]

OPENS = f"""
import sys, numpy
from grader.boundary.boundary import Boundary
from grader.boundary.connection import WorkerFailure
with Boundary("sandbox" if sys.platform == "linux" else "process") as boundary:
    for kind in ["nothing", *{FORGED}]:
        problem = boundary.open({FORGES.encode()!r})
        try:
            problem.forge(kind)
            print(kind, problem.right(numpy.arange(2.0)).tolist())
        except WorkerFailure as failure:
            print(kind, failure.status)
        problem.close()
"""


@pytest.mark.slow
def test_what_needs_torch_is_no_answer_where_there_is_none(without_torch: Path) -> None:
    """A worker that tells of tensors gets a verdict, and the grader does not stumble."""
    done = subprocess.run([str(without_torch), "-c", OPENS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = ["nothing [1.0, 2.0]", *(f"{kind} bad_output" for kind in FORGED)]
    assert done.stdout.splitlines() == told


@pytest.mark.slow
def test_a_first_problem_is_written_in_numpy(without_torch: Path, tmp_path: Path) -> None:
    head = 'title = "Empty"\nvalues = "numpy"\n\n[[parts]]\nid = "one"\ntitle = "All"\n'
    (tmp_path / "course.toml").write_text(head, encoding="utf-8")
    run = runner(without_torch, Course(tmp_path), tmp_path)
    assert "there is no [[problems]]" in " ".join(run("check").stderr.split())
    written = run("new", "01-residual-sum").stdout
    assert f"uv run grader --course {tmp_path} audit 01 --write-fingerprints" in written
    done = run("audit", "--jobs", "1", "--write-fingerprints")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "caught 2 of 2" in done.stdout


@pytest.mark.slow
def test_a_course_in_torch_says_that_torch_is_missing(
    without_torch: Path, small_course: Course, tmp_path: Path
) -> None:
    done = runner(without_torch, small_course, tmp_path)("watch")
    assert done.returncode == 2
    assert "PyTorch is not installed" in done.stdout + done.stderr
