"""`grader find`: a whole file with one known mistake in it, for a student to find and to mend.

Which mistake a student gets depends on the student's name, the problem and a word for the course
alone, so that it can be told again at any time, and nothing needs to be kept.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from grader.course import SUBMISSION_FILE, Course, Problem
from grader.errors import CourseError, UsageError
from grader.files import write_together
from grader.grade.job import grader_for
from grader.grade.settings import Settings
from grader.grade.submission import Grader
from grader.intake.handed_in import StudentFile, Submission
from grader.intake.reading import read_source
from grader.intake.result_names import result_name
from grader.result import shown
from grader.run.worth_of_tests import Target, targets
from grader.text import person_name, quoted

_MOST_WRONG = 3
"""In so many lines at most a file may be wrong, to be an exercise."""

_MOST_MENDED = 8
"""Lines that a mend may take away and add; more is another file."""

_TASK = """\
# This file looks right, but one thing in it is wrong. Find it, mend it, and change nothing else.
# Write here in which line it was, as this file is numbered now: line ?
"""
_ANSWER = re.compile(r"^#.*\bline +(\d{1,6})[ \t\r.]*$", re.MULTILINE)


@dataclass(frozen=True)
class Exercise:
    """What one student gets, and its key.

    Attributes:
        source: the file.
        text: what is wrong in it.
        lines: where that is.
    """

    source: str
    text: str
    lines: tuple[int, ...]


@dataclass(frozen=True)
class HuntVerdict:
    """What a student made of an exercise.

    Attributes:
        found: whether the line that was named is one that the mend changes.
        mended: whether the file is right now.
        reasons: what is to be said against either.
    """

    found: bool
    mended: bool
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as a sentence or two."""
        said = [f"found: {_yes(self.found)}, mended: {_yes(self.mended)}.", *self.reasons]
        return " ".join(said)


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def exercises(course: Course, problem: Problem) -> list[Exercise]:
    """Return all files of the catalogue in which a few lines are wrong, in a fixed order.

    Raises:
        CourseError: there is none.
    """
    found = [_exercise(target) for target in targets(course, problem) if not target.is_right]
    plain = [exercise for exercise in found if 0 < len(exercise.lines) <= _MOST_WRONG]
    if not plain:
        raise CourseError(f"no mistake of {problem.id} is one of a few lines")
    return sorted(plain, key=lambda exercise: exercise.source)


def exercise_for(student: str, known: list[Exercise], problem: Problem, word: str) -> Exercise:
    """Return the exercise of one student.

    Args:
        student: the name.
        known: what `exercises` gave.
        problem: which.
        word: for the course, such as its year; with another one, others get other mistakes.
    """
    digest = hashlib.sha256("\0".join((word, problem.id, student)).encode()).digest()
    return known[int.from_bytes(digest[:8], "big") % len(known)]


def _exercise(target: Target) -> Exercise:
    """Return a target as an exercise: what is wrong in it is what the right file has otherwise."""
    wrong, right = (source.decode().splitlines() for source in (target.source, target.right))
    first = _TASK.count("\n")
    lines = sorted(number + first for number in _touched(wrong, right))
    return Exercise(_TASK + "\n".join(wrong) + "\n", target.text, tuple(lines))


def _touched(before: list[str], after: list[str]) -> set[int]:
    """Return the numbers of the lines that a change takes away, replaces, or adds others beside."""
    found: set[int] = set()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, _, _ in matcher.get_opcodes():
        if kind == "insert":
            found |= {first, first + 1}
        elif kind != "equal":
            found |= set(range(first + 1, last + 1))
    return found


def judge_found(exercise: Exercise, answer: bytes, problem: Problem, grader: Grader) -> HuntVerdict:
    """Run what a student made of an exercise, and judge it.

    Args:
        exercise: what the student got.
        answer: the file that came back.
        problem: whose tests it must pass.
        grader: runs it, behind the boundary.
    """
    text = answer.decode(errors="replace")
    named = _ANSWER.search(text)
    before, after = (_without_task(each) for each in (exercise.source, text))
    changed = _changed(before, after)
    small = changed <= _MOST_MENDED
    touched = {n + _TASK.count("\n") for n in _touched(before, after)} if small else set()
    result = grader.grade(Submission("answer", {problem.id: StudentFile(answer)}))
    right = result.problems[0].points == result.problems[0].max > 0
    reasons = []
    if named is None:
        reasons.append("No line is named.")
    if not right:
        points, most = shown(result.problems[0].points), shown(result.problems[0].max)
        reasons.append(f"The file has {points} of {most} points.")
    if not small:
        reasons.append(f"{changed} lines are other ones; that is no mend.")
    found = named is not None and right and small and int(named[1]) in touched
    return HuntVerdict(found, right and small, tuple(reasons))


def _changed(before: list[str], after: list[str]) -> int:
    """Return how many lines were taken away and added; of a long answer, at least how many."""
    if len(after) > len(before) + _MOST_MENDED:
        return len(after) - len(before)
    changes = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return sum(b - a + d - c for kind, a, b, c, d in changes if kind != "equal")


def _without_task(text: str) -> list[str]:
    """Return a file's lines below the task, into which the student writes the answer."""
    lines = text.splitlines()
    return lines[_TASK.count("\n") :] if lines[:1] == _TASK.splitlines()[:1] else lines


def place_of(folder: Path, student: str, problem: Problem) -> Path:
    """Return where a student's exercise is written, and where the answer is looked for."""
    return folder / result_name(student, student) / problem.id / SUBMISSION_FILE


def known_names(given: Iterable[str]) -> list[str]:
    """Return students' names, as they are alike however letters and blanks are written.

    Raises:
        UsageError: one is empty, or there twice.
    """
    names = [*map(person_name, given)]
    if not all(names):
        raise UsageError("A name is empty. Who gets the exercise?")
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"{quoted(twice)} is there twice. Say names that differ, such as e-mails.")
    return names


def write_exercises(dealt: Mapping[str, Exercise], folder: Path, problem: Problem) -> list[str]:
    """Write exercises, and return where those are whose folder is not called as the student is.

    Raises:
        UsageError: there is a file already, which someone may have worked on; nothing is written.
        CannotWrite: one can't be written; none is.
    """
    places = {student: place_of(folder, student, problem) for student in dealt}
    for path in places.values():
        if path.exists():
            raise UsageError(f"{path} is there already. Choose another folder, or take it away.")
    write_together({path: dealt[student].source for student, path in places.items()})
    folders = {student: path.parent.parent.name for student, path in places.items()}
    return [f"{student}: {name}" for student, name in folders.items() if name != student]


def key_line(student: str, exercise: Exercise) -> str:
    """Return what an instructor reads of a student's exercise."""
    numbers = ", ".join(map(str, exercise.lines))
    return f"{student}: line {numbers}: {exercise.text}"


def checked(
    dealt: Mapping[str, Exercise], folder: Path, course: Course, problem: Problem
) -> Iterator[str]:
    """Judge the answers of some students, behind the boundary; yield a line for each.

    Args:
        dealt: the students' exercises.
        folder: where the answers are, each where its exercise was written.
        course: whose tests they must pass.
        problem: which.

    Raises:
        InternalError: the boundary can't be had.
        UsageError: there is no such folder.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    with grader_for(course.only_with([problem]), Settings()) as grader:
        for student, exercise in dealt.items():
            path = place_of(folder, student, problem)
            file = read_source(path)
            if not path.is_file():
                yield f"{student}: there is no {path}."
            elif file.source is None:
                yield f"{student}: {file.reason}"
            else:
                yield f"{student}: {judge_found(exercise, file.source, problem, grader)}"
