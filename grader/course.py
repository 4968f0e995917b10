"""What the course is made of: its problems, where their files are, and how one is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from grader.errors import CourseError, UsageError
from grader.result import Part

HIDDEN_MARKER = "# --- hidden tests ---"
"""Tests below this line of a test file run only when grading."""

SUBMISSION_FILE = "problem.py"
"""The file that a student edits, in every problem's folder."""

OWN_PICTURE = "my_"
"""How the names of pictures begin that somebody has drawn for themselves."""

OWN_TESTS = "test_mine.py"
"""The file in a problem's folder that a student may write tests into."""

_PROBLEM_FOLDER = re.compile(r"\d\d-[a-z0-9-]+")

_PART_TWO = re.compile(r"\bpart two\b", re.IGNORECASE)


@dataclass(frozen=True)
class Problem:
    """One problem of the course: a folder such as `problems/03-scaled-attention`."""

    folder: Path

    @cached_property
    def id(self) -> str:
        """The folder's name, which is also the problem's column in a gradebook."""
        return self.folder.name

    @property
    def part(self) -> Part:
        """The part of the course that it belongs to, as the head of its README says.

        A problem of part two says `Part two` there, in the line that has its points. Any other is
        of part one.
        """
        try:
            text = (self.folder / "README.md").read_text(encoding="utf-8")
        except FileNotFoundError:  # an autograder is without those that it does not grade
            return Part.ONE
        return Part.TWO if _PART_TWO.search(text.partition("\n## ")[0]) else Part.ONE

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
    def is_begun(self) -> bool:
        """Whether the student's file is there and no longer the stub, however its lines end."""
        if not self.stub.is_file() or not self.original.is_file():
            return self.stub.is_file()
        return self.stub.read_bytes().splitlines() != self.original.read_bytes().splitlines()

    @property
    def probe_file(self) -> Path:
        """The questions by which a mistake is told; `grader.testing.diagnosis` asks them."""
        return self.folder / "probe.py"

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
    """The folder that holds `problems/` and, at the instructor's, `solutions/`.

    Attributes:
        root: the folder.
        only: the ids of the problems that count; empty when all do.
    """

    root: Path
    only: frozenset[str] = frozenset()

    def only_with(self, problems: Iterable[Problem]) -> Course:
        """Return the same course as if it had no other problems."""
        return replace(self, only=frozenset(problem.id for problem in problems))

    def problems(self) -> list[Problem]:
        """Return all problems in the order of their numbers.

        Raises:
            CourseError: there is no problem, or a problem has no test file of the right name.
        """
        found = [problem for problem in self._folders() if not self._is_left_over(problem)]
        problems = [problem for problem in found if not self.only or problem.id in self.only]
        if not problems:
            raise CourseError(f"no problem folders such as 01-softmax in {self.root / 'problems'}")
        for problem in problems:
            if not problem.test_file.is_file():
                raise CourseError(f"{problem.id} has no test file; expected {problem.test_file}")
        return problems

    def left_over(self) -> list[Problem]:
        """Return the problems of which a student's copy has nothing but the student's work.

        An update to part one alone leaves such folders. At the instructor's there are none: a
        problem without its files is a broken one there.
        """
        return [problem for problem in self._folders() if self._is_left_over(problem)]

    def _folders(self) -> list[Problem]:
        folders = sorted((self.root / "problems").glob("*"))
        return [Problem(folder) for folder in folders if is_problem_folder(folder)]

    def _is_left_over(self, problem: Problem) -> bool:
        of_the_course = (problem.test_file, problem.original, problem.folder / "README.md")
        is_students = not (self.root / "solutions").is_dir()
        return is_students and not any(path.is_file() for path in of_the_course)

    def of_part(self, part: Part | None) -> list[Problem]:
        """Return the problems of one part, in the order of their numbers; of both if it is None.

        Raises:
            UsageError: there is none.
        """
        problems = [p for p in self.problems() if part in (None, p.part)]
        if not problems:
            raise UsageError(f"This course has no part {part}.")
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


def on_the_way(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems that a student is at: all of part one, and of part two what was begun.

    Where there are none of part one, somebody asked for part two: then they are all.
    """
    problems = list(problems)
    asked = all(problem.part is Part.TWO for problem in problems)
    return [p for p in problems if asked or p.part is Part.ONE or p.is_begun]


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems in the order in which a student goes through them.

    That is the order of their numbers, but for who began part two and nothing of part one.
    """
    problems = list(problems)
    begun = {problem.part for problem in problems if problem.is_begun}
    skips = begun == {Part.TWO}
    return sorted(problems, key=lambda p: (p.part is Part.ONE) == skips)


def is_problem_folder(folder: Path) -> bool:
    """Tell whether a folder is called as those of problems are."""
    return _PROBLEM_FOLDER.fullmatch(folder.name) is not None


def own_course() -> Course:
    """Return the course that this grader belongs to.

    Never the folder one happens to stand in: that may be a student's, with tests of their own.
    """
    return Course(Path(__file__).resolve().parents[1])
