"""Fixtures for attacks: a sandbox, targets, and a check for files that an attack changed."""

from __future__ import annotations

import ctypes
import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader.course import Course
from grader.grade.settings import Settings
from grader.grade.submission import Grader
from grader.intake.handed_in import StudentFile, Submission
from grader.result import ProblemResult, SubmissionResult
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.spawn import may_want_compiler
from grader.sandbox.starting import TemplateProcess
from tests.grader.attacks.calls import SOURCES
from tests.lent import lent_sandbox
from tests.processes import descendants_of

FILES = Path(__file__).parent / "files"
CALL_SECONDS = 2.0
HANGING_SECONDS = 0.5
"""The time limit in seconds for endless code. A correct call takes less than a hundredth of it."""
RIGHT = (FILES / "00_right.py").read_bytes()
WRONG = b"def double(x): return 3 * x\n"
CANARY = "canary-" + "7" * 12
SOLUTION = "SOLUTION = True\n\n\ndef double(x):\n    return x + x\n"

_PR_SET_CHILD_SUBREAPER = 36


@dataclass
class Target:
    """The targets of attacks, created for each test.

    Attributes:
        folder: a folder with files to read, to which every user may write.
        victim: the id of a process to kill.
        port: a port of this machine on which `listener` listens.
        canary: a secret in the grader's environment.
    """

    folder: Path
    victim: int
    port: int
    canary: str = CANARY

    def tree(self) -> dict[str, tuple[int, str]]:
        """Return the mode and the content of all files in the folder."""
        return tree(self.folder)

    def source(self, name: str) -> str:
        """Return the source of an attack, with these targets filled in."""
        if name in SOURCES:
            return SOURCES[name]
        return self.filled_in((FILES / f"{name}.py").read_text(encoding="utf-8"))

    def filled_in(self, text: str) -> str:
        """Replace the placeholders in a source with these targets."""
        text = text.replace("@FOLDER@", str(self.folder)).replace("@VICTIM@", str(self.victim))
        return text.replace("@PORT@", str(self.port))


def make_folder(folder: Path) -> Path:
    """Create files to attack in a folder to which every user may write; return the folder."""
    other = folder / "class" / "ada" / "01-doubling"
    other.mkdir(parents=True)
    (folder / "outputs").mkdir()
    (folder / "solution.py").write_text(SOLUTION)
    (other / "problem.py").write_text(SOLUTION)
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777)
    for parent in folder.parents:
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o111)
    return folder


@pytest.fixture(scope="session")
def listener() -> Iterator[socket.socket]:
    """Yield a socket that listens on this machine only."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.fixture(scope="session")
def new_target(listener: socket.socket) -> Iterator[Callable[[Path], Target]]:
    """Return a function that creates targets in a given folder."""
    processes = []

    def make(folder: Path) -> Target:
        process = subprocess.Popen([sys.executable, "-Sc", "import time; time.sleep(600)"])
        processes.append(process)
        return Target(make_folder(folder), process.pid, listener.getsockname()[1])

    yield make
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def target(
    tmp_path_factory: pytest.TempPathFactory, new_target: Callable[[Path], Target]
) -> Target:
    """Create the targets of attacks in the sandbox."""
    return new_target(tmp_path_factory.mktemp("attacked") / "target")


class Attacked:
    """Grades attacks one after the other, as the grader grades submissions.

    Args:
        course: a small course.
        sandbox: the sandbox in which all attacks run.
        call_seconds: the sandbox's time limit for a test.
    """

    def __init__(
        self, course: Course, sandbox: Sandbox, call_seconds: float = CALL_SECONDS
    ) -> None:
        self.course = course
        self.sandbox = sandbox
        self.started = set[bytes]()
        settings = Settings(call_seconds=call_seconds)
        self._grader = Grader(course, settings, sandbox)

    def __call__(self, source: bytes) -> ProblemResult:
        """Return the result of grading a file with this content."""
        return self.result(Submission("student", {"01-doubling": StudentFile(source)})).problems[0]

    def result(self, submission: Submission) -> SubmissionResult:
        return self._grader.grade(submission)

    def tree(self) -> dict[str, tuple[int, str]]:
        """Return the mode and the content of all files of the course."""
        return tree(self.course.root)

    def another(self) -> tuple[Sandbox, Attacked]:
        """Return a new sandbox, and an object that grades in it."""
        sandbox = Sandbox(call_seconds=CALL_SECONDS, memory_mb=256)
        return sandbox, Attacked(self.course, sandbox)

    @staticmethod
    def processes() -> set[int]:
        """Return the running descendants of this process."""
        return descendants_of(os.getpid())


def start_prefork_servers(attacked: Attacked, source: bytes = b"") -> None:
    """Grade a correct and a wrong file to start the prefork servers that `source` needs.

    A prefork server with torch's compiler takes as long to start as several attacks take.
    """
    kind = b"# may want torch.compile\n" if may_want_compiler(source) else b""
    if kind not in attacked.started:
        assert attacked(kind + RIGHT).points == 4
        assert attacked(kind + WRONG).points == 0
        attacked.started.add(kind)


@pytest.fixture(scope="session")
def grade(
    tmp_path_factory: pytest.TempPathFactory,
    new_course: Callable[[Path], Course],
    origin: TemplateProcess,
) -> Iterator[Attacked]:
    """Return an object that grades attacks, all in one sandbox."""
    course = new_course(tmp_path_factory.mktemp("graded") / "course")
    os.environ["COURSE_CANARY"] = CANARY
    # Orphaned processes become children of this process, so the test can find them.
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with lent_sandbox(origin, call_seconds=CALL_SECONDS, memory_mb=256) as sandbox:
        attacked = Attacked(course, sandbox)
        start_prefork_servers(attacked)
        yield attacked
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    os.environ.pop("COURSE_CANARY", None)


@pytest.fixture(scope="session")
def impatient(grade: Attacked, origin: TemplateProcess) -> Iterator[Attacked]:
    """Return an object that grades endless code, in a sandbox with a short time limit."""
    limits = {"call_seconds": HANGING_SECONDS, "memory_mb": 256}
    with lent_sandbox(origin, **limits) as sandbox:
        attacked = Attacked(grade.course, sandbox, HANGING_SECONDS)
        start_prefork_servers(attacked)
        yield attacked


def tree(folder: Path) -> dict[str, tuple[int, str]]:
    """Return the mode and the content of all files in a folder."""
    return {str(path): (path.lstat().st_mode, _content(path)) for path in folder.rglob("*")}


def _content(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return ""
    return hashlib.sha256(path.read_bytes()).hexdigest()
