"""The course: its parts and problems in `course.toml`, and the paths of its files."""

from __future__ import annotations

import codecs
import os
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from grader.errors import CourseError, UsageError
from grader.files import read_toml
from grader.result import ProblemResult
from grader.text import MOST_POINTS

MANIFEST = "course.toml"
"""The file in the course's folder that lists its parts and problems."""

COURSE_VARIABLE = "GRADER_COURSE"
"""The environment variable that passes `--course` on to child processes."""

COPY = ".release.json"
"""The file in a students' copy of the course that lists the released files."""

COPY_DATA = "grader_data"
"""The folder in a students' copy that contains the grader's data files."""

HIDDEN_MARKER = "# --- hidden tests ---"
"""The line that separates the visible tests of a test file from the hidden tests below it."""

REFERENCE = "reference"
"""The name that `.edits` files use for the reference solution."""

SUBMISSION_FILE = "problem.py"
"""The file that a student edits, in every problem's folder."""

STUB_LINE = "raise NotImplementedError"
"""The line of a stub that students replace."""

OWN_PICTURE = "my_"
"""The file name prefix of a student's pictures."""

NOTEBOOK = "notebook.ipynb"
"""The file name of a problem's notebook, which a release may contain."""

OWN_TESTS = "test_mine.py"
"""The file in a problem's folder for tests that a student writes."""

NAMES_MISTAKES = ("seen again", "at once")
"""The values of `name` in `course.toml`, which says when a test run names a student's mistake.

The first value is the default.
"""

VALUES = ("torch", "numpy")
"""The values of `values` in `course.toml`: the library of the course's tensors.

The first value is the default.
"""

_Minutes = Annotated[int, Meta(ge=0, le=100_000)]

_PROBLEM_FOLDER = re.compile(r"[0-9]{2}-[a-z0-9-]+")

_PART_ID = re.compile(r"[a-z][a-z0-9_]*")


class CoursePart(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the course.

    Attributes:
        id: the name of the part in commands and in the columns of a gradebook.
        title: the subject of the part.
        optional: whether its points are reported separately from the total.
    """

    id: str
    title: str
    optional: bool = False

    def __post_init__(self) -> None:
        """Check the id."""
        if not _PART_ID.fullmatch(self.id):
            raise ValueError(f"'{self.id}' should consist of small letters, digits and _")


class Entry(Struct, frozen=True, forbid_unknown_fields=True):
    """A problem in `course.toml`.

    Attributes:
        id: the name of the problem's folder.
        title: the subject of the problem.
        part: the id of the part that the problem belongs to.
        points: the sum of the points of the problem's tests.
        difficulty: the difficulty in a few words.
        minutes: the minimum and the maximum of the usual time, in minutes.
        forbidden: the functions that a student's code may not call.
        forbidden_in: for a function or class in `problem.py`, further functions that it may not
            call.
    """

    id: str
    title: str
    part: str
    points: Annotated[float, Meta(gt=0, le=MOST_POINTS)]
    difficulty: str
    minutes: tuple[_Minutes, _Minutes]
    forbidden: tuple[str, ...] = ()
    forbidden_in: dict[str, tuple[str, ...]] = {}

    def __post_init__(self) -> None:
        """Check the id and the order of the minutes."""
        if not _PROBLEM_FOLDER.fullmatch(self.id):
            raise ValueError(f"'{self.id}' should look like 01-name")
        least, most = self.minutes
        if least > most:
            raise ValueError(f"minutes should have the smaller number first, not {least}, {most}")

    def forbidden_where(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the functions that are forbidden in tests of the functions and classes `names`."""
        further = [
            each for name, more in self.forbidden_in.items() if name in names for each in more
        ]
        return (*self.forbidden, *dict.fromkeys(further))

    def all_forbidden(self) -> list[tuple[str, ...]]:
        """Return the different sets of forbidden functions: first the set for all tests, then the
        sets for the functions and classes in `forbidden_in`.
        """
        of_some = [self.forbidden_where({name}) for name in self.forbidden_in]
        return [*dict.fromkeys([self.forbidden, *of_some])]


class Handout(Struct, frozen=True, forbid_unknown_fields=True):
    """Patterns of files that students get in addition to READMEs, stubs and visible tests.

    Attributes:
        shared: patterns of files in the course's folder.
        problem: patterns of files in each problem's folder.
    """

    shared: tuple[str, ...] = ()
    problem: tuple[str, ...] = ()


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `course.toml`.

    Attributes:
        title: the title of the course.
        parts: the parts in order.
        problems: the problems in order. A new course has none.
        students: the files that students get.
        name: when a student's test run names a mistake; one of `NAMES_MISTAKES`.
        values: the library of the course's tensors; one of `VALUES`.
    """

    title: str
    parts: Annotated[tuple[CoursePart, ...], Meta(min_length=1)]
    problems: tuple[Entry, ...] = ()
    students: Handout = Handout()
    name: str = NAMES_MISTAKES[0]
    values: str = VALUES[0]

    def __post_init__(self) -> None:
        """Check that ids are unique, parts exist, and `name` and `values` are valid."""
        ids = [part.id for part in self.parts]
        for kind, names in (("parts", ids), ("problems", [entry.id for entry in self.problems])):
            if twice := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"[[{kind}]]: the id '{twice[0]}' appears twice")
        for entry in self.problems:
            if entry.part not in ids:
                known = f"the parts are {', '.join(ids)}"
                raise ValueError(f"[[problems]] {entry.id}: no part '{entry.part}'; {known}")
        for key, value, choices in (
            ("name", self.name, NAMES_MISTAKES),
            ("values", self.values, VALUES),
        ):
            if value not in choices:
                raise ValueError(f"{key} should be '{choices[0]}' or '{choices[1]}', not '{value}'")

    @property
    def names_at_once(self) -> bool:
        """Whether a test run names a mistake the first time that the student makes it."""
        return self.name == "at once"

    @classmethod
    def load(cls, root: Path) -> Manifest:
        """Read a course's `course.toml`.

        Raises:
            CourseError: the file is missing, or a key is missing, is unknown or has the wrong type.
        """
        path = root / MANIFEST
        try:
            modified = path.stat().st_mtime_ns
        except OSError:
            raise CourseError(f"{path} is missing; it lists the problems of the course") from None
        return _manifest(path, modified)

    def entry(self, id: str) -> Entry:
        """Return the entry of the problem with this id.

        Raises:
            CourseError: the problem has no entry.
        """
        for entry in self.problems:
            if entry.id == id:
                return entry
        raise CourseError(f"{MANIFEST} has no [[problems]] entry for {id}")

    def part(self, id: str) -> CoursePart:
        """Return the part of the course with this id.

        Raises:
            UsageError: there is no such part.
        """
        for part in self.parts:
            if part.id == id:
                return part
        there_are = ", ".join(part.id for part in self.parts)
        raise UsageError(f"This course has no part '{id}'; there are: {there_are}.")


@cache  # `modified` is part of the cache key, so a changed file is read again
def _manifest(path: Path, modified: int) -> Manifest:
    try:
        data = read_toml(path)
    except ValueError as error:
        raise CourseError(f"{path} can't be read: {error}") from None
    try:
        return msgspec.convert(data, Manifest)
    except msgspec.ValidationError as error:
        raise CourseError(f"{path}: {_explained(str(error), data)}") from None


_TABLES = {"parts": CoursePart, "problems": Entry, "students": Handout}

_ERROR = re.compile(r"(.*?)(?: - at `\$\.(\w+)(?:\[(\d+)\])?\.?(.*)`)?")
"""An error message of msgspec. The groups are the text, a key, an index, and the keys below it."""


def _explained(message: str, data: Mapping[str, Any]) -> str:
    """Rewrite an error message of msgspec in the terms of course.toml: tables and keys."""
    match = _ERROR.fullmatch(message)
    assert match
    text, key, number, below = match.groups(default="")
    where = [key] if key else []
    if number:
        entry = data[key][int(number)]
        id = entry.get("id", "") if isinstance(entry, dict) else ""
        where = [f"[[{key}]] {id or f'number {int(number) + 1}'}"]
    where += [below] if below else []
    text = text.replace("Object missing required field", "missing key")
    text = text.replace("Expected", "expected")
    if "unknown field" in text:
        text = text.replace("Object contains unknown field", "unknown key")
        text += f"; the keys are {', '.join(_TABLES.get(key, Manifest).__struct_fields__)}"
    return ": ".join([", ".join(where), text] if where else [text])


@dataclass(frozen=True)
class Problem:
    """One problem of the course: a folder such as `problems/03-some-name`."""

    folder: Path

    @cached_property
    def id(self) -> str:
        """The name of the folder, which is also the problem's column name in a gradebook."""
        return self.folder.name

    @property
    def manifest(self) -> Manifest:
        """The manifest of the course."""
        return Manifest.load(self.folder.parents[1])

    @property
    def entry(self) -> Entry:
        """The problem's entry in `course.toml`.

        Raises:
            CourseError: the problem has no entry.
        """
        return self.manifest.entry(self.id)

    @property
    def part(self) -> CoursePart:
        """The part of the course that the problem belongs to."""
        return self.manifest.part(self.entry.part)

    def result(self) -> ProblemResult:
        """Return an empty result of this problem, without tests."""
        part = self.part
        return ProblemResult(self.id, part=part.id, optional=part.optional)

    @property
    def test_file(self) -> Path:
        """The test file of the problem, for example `test_some_name.py`."""
        return self.folder / f"test_{self.id[3:].replace('-', '_')}.py"

    @property
    def stub(self) -> Path:
        """The path of `problem.py`. The file is a stub until the student edits it."""
        return self.folder / SUBMISSION_FILE

    @property
    def data(self) -> Path:
        """The folder that contains the grader's data files for this problem.

        In a students' copy of the course, it is a separate folder. Otherwise it is the problem's
        folder.
        """
        separate = self.folder.parents[1] / COPY_DATA / self.id
        return separate if separate.is_dir() else self.folder

    @property
    def kept_stub(self) -> Path:
        """The path of the unchanged stub in a students' copy of the course."""
        return self.folder.parents[1] / COPY_DATA / self.id / "stub.py"

    @property
    def original(self) -> Path:
        """The unchanged stub: `kept_stub` in a students' copy, otherwise `stub`."""
        return self.kept_stub if self.kept_stub.is_file() else self.stub

    @property
    def is_begun(self) -> bool:
        """Whether the student's file exists and differs from the stub (see `is_stub`)."""
        if not self.stub.is_file():
            return False
        if not self.kept_stub.is_file():  # the course's repository has no second copy of the stub
            return STUB_LINE not in self.stub.read_text(encoding="utf-8", errors="replace")
        return not self.is_stub(self.stub.read_bytes())

    def is_stub(self, source: bytes | None) -> bool:
        """Return whether the content of a file equals the stub.

        A byte order mark, blank lines, trailing blanks and line endings are ignored, because
        editors change them.
        """
        if source is None or not self.original.is_file():
            return False
        return _nonblank_lines(source) == _nonblank_lines(self.original.read_bytes())

    @property
    def probe_file(self) -> Path:
        """The path of the probe, which calls the student's functions to identify a mistake."""
        return self.data / "probe.py"

    @property
    def fingerprints(self) -> Path:
        """The path of the file with each known mistake's answers to the probe."""
        return self.data / "fingerprints.json"

    def first_hidden_line(self) -> int | None:
        """Return the line number of `HIDDEN_MARKER`, or None if there are no hidden tests."""
        lines = self.test_file.read_text(encoding="utf-8").splitlines()
        return next((n for n, line in enumerate(lines, 1) if line == HIDDEN_MARKER), None)


@dataclass(frozen=True)
class Course:
    """A course: the folder that contains `problems/` and, except in most students' copies,
    `solutions/`.

    Attributes:
        root: the folder.
        only: the ids of the problems to use. An empty set selects all problems.
    """

    root: Path
    only: frozenset[str] = frozenset()

    def only_with(self, problems: Iterable[Problem]) -> Course:
        """Return the course restricted to these problems."""
        return replace(self, only=frozenset(problem.id for problem in problems))

    @property
    def manifest(self) -> Manifest:
        """The content of `course.toml`.

        Raises:
            CourseError: the file can't be read.
        """
        return Manifest.load(self.root)

    def problems(self) -> list[Problem]:
        """Return the problems in the order of `course.toml`.

        Raises:
            CourseError: the course has no problems, a problem's test file is missing, or
                `course.toml` has no entry for a problem's folder.
        """
        manifest = self.manifest
        if not manifest.problems:
            writes_one = f"`{command('author new 01-name')}` writes one"
            raise CourseError(f"{self.root / MANIFEST}: there is no [[problems]]; {writes_one}")
        folders = [self.root / "problems" / entry.id for entry in manifest.problems]
        problems = [Problem(f) for f in folders if not self.only or f.name in self.only]
        for problem in problems:
            if not problem.test_file.is_file():
                raise CourseError(f"{problem.id} has no test file; expected {problem.test_file}")
        # A students' copy may also contain folders that the student created.
        if self.has_solutions and not self.is_copy:
            for folder in filter(is_problem_folder, sorted((self.root / "problems").glob("*"))):
                manifest.entry(folder.name)
        return problems

    def of_part(self, part: str | None) -> list[Problem]:
        """Return the problems of one part in order, or all problems if `part` is None.

        Raises:
            UsageError: there is no such part, or it has no problem.
        """
        asked = None if part is None else self.manifest.part(part)
        problems = [p for p in self.problems() if asked in (None, p.part)]
        if not problems:
            raise UsageError(f"There is no problem of part {part} here.")
        return problems

    def select(self, names: list[str]) -> list[Problem]:
        """Return the problem for each name. If `names` is empty, return all problems.

        Args:
            names: ids of problems, numbers, or substrings of ids.

        Raises:
            UsageError: a name matches no problem, or several problems.
        """
        problems = self.problems()
        return [self._one(name, problems) for name in names] if names else problems

    def _one(self, name: str, problems: list[Problem]) -> Problem:
        wanted = Path(name).name.lower()
        if wanted.isascii() and wanted.isdecimal():
            matches = [p for p in problems if p.id[:2] == wanted.lstrip("0").zfill(2)]
        else:
            exact = [p for p in problems if p.id == wanted]
            matches = exact or [p for p in problems if wanted in p.id]
        if len(matches) != 1:
            problem = "fits more than one problem" if matches else "is not a problem"
            raise UsageError(f"'{name}' {problem}; there are: {', '.join(p.id for p in problems)}")
        return matches[0]

    @property
    def has_solutions(self) -> bool:
        """Whether the folder `solutions/` exists."""
        return (self.root / "solutions").is_dir()

    @property
    def is_copy(self) -> bool:
        """Whether this is a students' copy that `release` wrote."""
        return (self.root / COPY).is_file()

    def solution(self, problem: Problem) -> Path:
        """Return the path of the problem's reference solution. The file may be missing."""
        return self.root / "solutions" / problem.id / SUBMISSION_FILE

    def comparison(self, problem: Problem) -> Path:
        """Return the path of the script for `grader compare`. The file may be missing."""
        return self.solution(problem).with_name("compare.py")

    def salt(self, problem: Problem) -> Path:
        """Return the path of the file with the salt for the seeds of the problem's tests.

        Students never get the salt, so their code cannot compute the inputs of hidden tests.
        """
        return self.solution(problem).with_name("salt.txt")

    def right_files(self, problem: Problem) -> dict[str, Path]:
        """Return the paths of a problem's reference solution and variants, in this order.

        The keys are their names in `.edits` files.
        """
        solution = self.solution(problem)
        variants = sorted((solution.parent / "variants").glob("*.py"))
        return {REFERENCE: solution} | {path.stem: path for path in variants}


def _nonblank_lines(source: bytes) -> list[bytes]:
    """Return the nonblank lines, without trailing blanks and without a byte order mark."""
    lines = source.removeprefix(codecs.BOM_UTF8).splitlines()
    return [*filter(None, map(bytes.rstrip, lines))]


def problems_to_solve(problems: Iterable[Problem]) -> list[Problem]:
    """Return the required problems, and the optional problems that the student has begun.

    If all given problems are optional, the student selected them: return them all.
    """
    problems = list(problems)
    selected = all(problem.part.optional for problem in problems)
    return [p for p in problems if selected or not p.part.optional or p.is_begun]


def in_solving_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems in the order in which the student should solve them.

    Required problems come before optional problems. If the student has begun only optional
    problems, the optional problems come first.
    """
    problems = list(problems)
    begun = {problem.part.optional for problem in problems if problem.is_begun}
    optional_first = begun == {True}
    return sorted(problems, key=lambda p: p.part.optional != optional_first)


def is_problem_folder(folder: Path) -> bool:
    """Return whether the folder's name has the form of a problem's id."""
    return _PROBLEM_FOLDER.fullmatch(folder.name) is not None


def use_course(root: Path) -> None:
    """Make `own_course` return the course in a folder, in this process and its child processes.

    Raises:
        UsageError: the folder contains no course.toml.
    """
    if not (root / MANIFEST).is_file():
        raise UsageError(f"There is no {MANIFEST} in {root}, so it is not a course.")
    os.environ[COURSE_VARIABLE] = str(root.resolve())


def command(words: str) -> str:
    """Return a command line of the grader.

    If this process was started with `--course`, the command line repeats this option.

    Args:
        words: the command and its arguments.
    """
    named = os.environ.get(COURSE_VARIABLE)
    course = f"--course {shlex.quote(named)} " if named else ""
    return f"uv run grader {course}{words}"


def cd_to(folder: Path) -> str:
    """Return the `cd` prefix for a command that must run in `folder`.

    Return an empty string if it is the current folder.
    """
    try:
        path = os.path.relpath(folder)
    except ValueError:  # on another drive
        path = str(folder)
    return "" if path == "." else f"cd {shlex.quote(path)} && "


def own_course() -> Course:
    """Return the course that this process works on.

    It is the course of the option `--course`, otherwise the course that contains this grader. If
    there is neither, it is the course in the current folder or in the nearest folder above.

    A grader inside a course ignores the current folder, which may contain a student's files and
    different tests.

    Raises:
        UsageError: no course was found.
    """
    named = os.environ.get(COURSE_VARIABLE)
    if named:
        return Course(Path(named).resolve())
    here = Path.cwd()
    for folder in (Path(__file__).resolve().parents[1], here, *here.parents):
        if (folder / MANIFEST).is_file():
            return Course(folder)
    raise UsageError(
        f"There is no {MANIFEST} in this folder or above. Name a course: grader --course DIR"
    )
