"""What the course is made of: its problems, where their files are, and how one is loaded."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

HIDDEN_MARKER = "# --- hidden tests ---"
"""Tests below this line of a test file run only when grading."""

SUBMISSION_FILE = "problem.py"
"""The file that a student edits, in every problem's folder."""

STUDENT_MODULE = "problem_"
"""How the names of modules that hold a student's code begin."""

_PROBLEM_FOLDER = re.compile(r"\d\d-[a-z0-9-]+")


@dataclass(frozen=True)
class Problem:
    """One problem of the course: a folder such as `problems/03-scaled-attention`."""

    folder: Path

    @property
    def id(self) -> str:
        """The folder's name, which is also the problem's column in a gradebook."""
        return self.folder.name

    @property
    def test_file(self) -> Path:
        """The problem's one test file, for example `test_scaled_attention.py`."""
        return self.folder / f"test_{self.id[3:].replace('-', '_')}.py"

    @property
    def stub(self) -> Path:
        """The file that the student edits in the course's own folder."""
        return self.folder / SUBMISSION_FILE

    @property
    def original(self) -> Path:
        """The stub as it is handed out, kept beside the one that the student edits."""
        return self.folder / ".stub.py"

    @property
    def fingerprints(self) -> Path:
        """The answers of known mistakes, by which a report can name one."""
        return self.folder / "fingerprints.json"

    def first_hidden_line(self) -> int | None:
        """Return the line number of the hidden marker; None when the hidden half was cut off."""
        lines = self.test_file.read_text(encoding="utf-8").splitlines()
        return next((n for n, line in enumerate(lines, 1) if line == HIDDEN_MARKER), None)


@dataclass(frozen=True)
class Course:
    """The folder that holds `problems/` and, at the instructor's, `solutions/`."""

    root: Path

    def problems(self) -> list[Problem]:
        """Return all problems in the order of their numbers.

        Raises:
            CourseError: there is no problem, or a problem has no test file of the right name.
        """
        folders = sorted((self.root / "problems").glob("*"))
        problems = [Problem(f) for f in folders if _PROBLEM_FOLDER.fullmatch(f.name)]
        if not problems:
            raise CourseError(f"no problem folders such as 01-softmax in {self.root / 'problems'}")
        for problem in problems:
            if not problem.test_file.is_file():
                raise CourseError(f"{problem.id} has no test file; expected {problem.test_file}")
        return problems

    def select(self, names: list[str]) -> list[Problem]:
        """Return the problems meant by `names`: an id, a number or a part of an id; all if empty.

        Raises:
            UsageError: a name fits no problem, or more than one.
        """
        problems = self.problems()
        return [self._one(name, problems) for name in names] if names else problems

    def _one(self, name: str, problems: list[Problem]) -> Problem:
        wanted = Path(name).name.lower()
        if wanted.isdigit():
            matches = [p for p in problems if int(p.id[:2]) == int(wanted)]
        else:
            exact = [p for p in problems if p.id == wanted]
            matches = exact or [p for p in problems if wanted in p.id]
        if len(matches) != 1:
            found = "fits more than one problem" if matches else "is not a problem"
            raise UsageError(f"'{name}' {found}; there are: {', '.join(p.id for p in problems)}")
        return matches[0]

    def solution(self, problem: Problem) -> Path:
        """Return where the problem's reference solution is, whether or not it is there."""
        return self.root / "solutions" / problem.id / SUBMISSION_FILE


class CourseError(Exception):
    """The course's own files are not as they should be; the text says which and how."""


class UsageError(CourseError):
    """Something was asked for that isn't to be had; the course itself is well."""


def own_course() -> Course:
    """Return the course that this grader belongs to.

    Never the folder one happens to stand in: that may be a student's, with tests of their own.
    """
    return Course(Path(__file__).resolve().parent.parent)


def load_module(path: Path, name: str) -> ModuleType:
    """Run the Python file at `path` as a new module.

    The source is compiled afresh each time. Python's own import keeps byte code by time stamp and
    size, so that two saves within a second can run the older of the two.

    Raises:
        Whatever the file raises while it is compiled or run, and OSError when it can't be read.
    """
    module = ModuleType(name)
    module.__file__ = str(path)
    source = path.read_bytes()
    code = compile(source, str(path), "exec")
    importlib.util.decode_source(source)  # compile doesn't look into comments
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module


# What of the grader no mark depends on: what reads submissions (marks rest on what was read), what
# shows results, and the commands on top. Whatever is not named here counts.
_NO_MARKS = re.compile(
    r"reports/.*|(archives|audit|autograder|check|class_run|cli|doctor|earlier|hints|layouts|pictures"
    r"|release|replay|reset|student_cli|submissions|warm|watch)\.py"
)


def own_sha256(course: Course) -> str:
    """Return a hash over all that marks depend on besides the submission: grader and course."""
    digest = hashlib.sha256(code_sha256().encode())
    for problem in course.problems():
        digest.update(tests_sha256(course, problem).encode())
    return digest.hexdigest()


@cache
def code_sha256() -> str:
    """Return a hash over the part of the grader that marks depend on, as it was when first asked.

    The running program doesn't change with its files either.
    """
    package = Path(__file__).resolve().parent
    files = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    return _sha256({name: path for name, path in files.items() if not _NO_MARKS.fullmatch(name)})


def tests_sha256(course: Course, problem: Problem) -> str:
    """Return a hash over a problem's tests, the numbers beside them, and its solution."""
    files = {path.name: path for path in problem.folder.glob("*.json")}
    files |= {"tests": problem.test_file, "solution": course.solution(problem)}
    return _sha256({name: path for name, path in files.items() if path.is_file()})


def _sha256(files: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
