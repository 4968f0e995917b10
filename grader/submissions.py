"""What comes in: finds submissions in folders and reads each student's files once, safely.

Nothing in a submission is run, imported or followed here. A file is read only when it is a regular
file of reasonable size and not a link; everything else about it is told in a sentence.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from grader.course import SUBMISSION_FILE, Course

MAX_SOURCE_BYTES = 1_000_000
"""The largest problem.py that is read. The reference solutions have about 3,000 bytes."""

_NOISE = {"__MACOSX", "__pycache__", ".git", ".venv", ".ipynb_checkpoints", ".DS_Store"}
_UNSAFE = re.compile(r"[^\w.@+ -]", re.ASCII)


class SubmissionError(Exception):
    """A path that was given can't be graded; the text says why and what to give instead."""


@dataclass(frozen=True)
class StudentFile:
    """One problem's file, as read: its bytes, or why there are none.

    Attributes:
        source: the file's bytes; None when it couldn't be read.
        reason: why there is no source; for the student and the instructor.
        bad: whether the file is there but can't be used, rather than missing.
    """

    source: bytes | None
    reason: str = ""
    bad: bool = False

    @property
    def sha256(self) -> str:
        """The hash of what was read; empty when nothing was."""
        return "" if self.source is None else hashlib.sha256(self.source).hexdigest()


@dataclass
class Submission:
    """One student's work.

    Attributes:
        name: a name that is safe for a file and unique in its class.
        files: by problem id.
        notes: sentences about what was found, for example a folder whose name was nearly right.
    """

    name: str
    files: dict[str, StudentFile]
    notes: list[str] = field(default_factory=list)


def find_submissions(paths: Iterable[Path], course: Course) -> list[Submission]:
    """Read all submissions at `paths`, each a submission's folder or a folder of such folders.

    Raises:
        SubmissionError: a path isn't a folder, or there is nothing in it.
    """
    folders = [folder for path in paths for folder in _submission_folders(path, course)]
    submissions: dict[str, Submission] = {}
    for folder in folders:
        name = _free_name(folder.resolve().name, submissions)
        submissions[name] = _read_submission(folder, name, course)
    return list(submissions.values())


def _submission_folders(path: Path, course: Course) -> list[Path]:
    if not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise SubmissionError(f"{path} {what}; give a submission's folder or a folder of them")
    if _looks_like_submission(path, course):
        return [path]
    inside = [child for child in sorted(_children(path)) if child.is_dir()]
    if not inside:
        raise SubmissionError(
            f"{path} holds no submissions; a submission is a folder with folders such as "
            f"{course.problems()[0].id}/{SUBMISSION_FILE} in it"
        )
    return inside


def _looks_like_submission(folder: Path, course: Course) -> bool:
    ids = {problem.id for problem in course.problems()}
    return any(child.name in ids for child in _children(_problems_folder(folder)))


def _problems_folder(folder: Path) -> Path:
    below = folder / "problems"
    return below if below.is_dir() and not below.is_symlink() else folder


def _children(folder: Path) -> Iterator[Path]:
    """Yield what stands in a folder, but for links and what tools leave behind."""
    try:
        children = list(folder.iterdir())
    except OSError:
        return
    yield from (c for c in children if c.name not in _NOISE and not c.is_symlink())


def _free_name(folder_name: str, taken: Iterable[str]) -> str:
    """Return a name for result files that no other submission has, whatever the folder's name."""
    safe = _UNSAFE.sub("_", folder_name).strip(" .")[:100] or "submission"
    lowered = {name.lower() for name in taken}
    candidates = [safe, *(f"{safe}-{n}" for n in range(2, len(lowered) + 3))]
    return next(name for name in candidates if name.lower() not in lowered)


def _read_submission(folder: Path, name: str, course: Course) -> Submission:
    base = _problems_folder(folder)
    ids = [problem.id for problem in course.problems()]
    notes = [f"The folder's name is {folder.name!a}."] if folder.resolve().name != name else []
    for child in sorted(_children(base)):
        near = difflib.get_close_matches(child.name.lower(), ids, n=1, cutoff=0.8)
        if child.is_dir() and child.name not in ids and near:
            notes.append(f"There is a folder {child.name!a}; did you mean {near[0]}?")
    return Submission(name, {id: _read_problem(base / id) for id in ids}, notes)


def _read_problem(folder: Path) -> StudentFile:
    if not folder.is_dir() or folder.is_symlink():
        return StudentFile(None, f"There is no folder {folder.name} in the submission.")
    path = folder / SUBMISSION_FILE
    if not os.path.lexists(path):
        return StudentFile(None, f"There is no {SUBMISSION_FILE} in {folder.name}.{_near(folder)}")
    return read_source(path)


def _near(folder: Path) -> str:
    """Name files that may have been meant. Which one, only the student knows."""
    files = [c.name for c in sorted(_children(folder)) if c.is_file() and c.suffix == ".py"]
    near = [n for n in files if difflib.SequenceMatcher(None, n, SUBMISSION_FILE).ratio() > 0.6]
    if not near:
        return ""
    listed = " or ".join(ascii(n) for n in near[:3])
    return f" There is {listed}: it has to be called {SUBMISSION_FILE}."


def read_source(path: Path) -> StudentFile:
    """Read a regular file of at most MAX_SOURCE_BYTES without following a link or waiting."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    if path.is_symlink():
        return _unusable(path, "is a link; a link is not followed")
    try:
        descriptor = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError as error:
        return _unusable(path, f"can't be opened ({error.strerror})")
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _unusable(path, "is not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            source = file.read(MAX_SOURCE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(source) > MAX_SOURCE_BYTES:
        return _unusable(path, f"has more than {MAX_SOURCE_BYTES:,} bytes")
    return StudentFile(source)


def _unusable(path: Path, why: str) -> StudentFile:
    return StudentFile(None, f"{path.name} in {path.parent.name} {why}.", bad=True)
