"""What comes in: finds submissions in folders and archives and reads each student's files once.

Nothing in a submission is run, imported, unpacked or followed here. A file is read only when it is
a regular file of reasonable size; everything else about it is told in a sentence. Whatever is wrong
with one submission is said in its own row and never keeps the others from being read.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from grader.archives import (
    ARCHIVE_SUFFIXES,
    BadArchive,
    Entry,
    InArchive,
    Kind,
    OnDisk,
    Refused,
    archive_suffix,
)
from grader.course import SUBMISSION_FILE, Course

MAX_SOURCE_BYTES = 1_000_000
"""The largest problem.py that is read. The reference solutions have about 3,000 bytes."""

_PROBLEMS = "problems"
_NAMES_SHOWN = 3
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
    """Read all submissions at `paths`, each one submission or a class of them.

    Folders and archives are alike. A class holds submissions; a single folder around a class, or
    around what an archive holds, is looked through. What holds a problem's folder is one
    submission, unless two or more submissions stand beside that folder: then it is a class, and the
    problem's folder is listed with a reason.

    Raises:
        SubmissionError: a path is neither a folder nor an archive, or there is nothing in it.
    """
    ids = [problem.id for problem in course.problems()]
    submissions: dict[str, Submission] = {}
    for entry in (entry for path in paths for entry in _entries_at(path, ids)):
        name = _free_name(_handed_in_as(entry), submissions)
        submissions[name] = _read_submission(entry, name, ids)
    return list(submissions.values())


def read_source(path: Path) -> StudentFile:
    """Read a regular file of at most MAX_SOURCE_BYTES without following a link or waiting."""
    return _read_file(OnDisk(path, Kind.FILE), path.parent.name)


# Which submissions there are


def _entries_at(path: Path, ids: Sequence[str]) -> list[Entry]:
    """Return each submission at a path that the instructor gave."""
    given = _given(path, ids)
    try:
        found = _opened(given, ids)
        students = _students(found, isinstance(found, InArchive), ids)
    except BadArchive as bad:
        return [InArchive(given.name, Kind.OTHER, fault=str(bad))]
    except Refused as refused:
        raise SubmissionError(f"{path} {refused}; {_what_to_give(ids)}") from None
    if not students:
        raise SubmissionError(f"{path} holds no submissions; {_what_to_give(ids)}")
    return students


def _given(path: Path, ids: Sequence[str]) -> OnDisk:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        raise SubmissionError(f"{path} does not exist; {_what_to_give(ids)}") from None
    except OSError as error:
        raise SubmissionError(
            f"{path} can't be read ({error.strerror}); {_what_to_give(ids)}"
        ) from None
    if not is_folder and not archive_suffix(path.name):
        raise SubmissionError(f"{path} is not a folder or an archive; {_what_to_give(ids)}")
    return OnDisk(path.resolve(), Kind.FOLDER if is_folder else Kind.FILE)


def _what_to_give(ids: Sequence[str]) -> str:
    return (
        f"give a submission, which is a folder or an archive ({', '.join(ARCHIVE_SUFFIXES)}) with "
        f"{ids[0]}/{SUBMISSION_FILE} and so on in it, or a folder of submissions"
    )


def _opened(entry: Entry, ids: Sequence[str]) -> Entry:
    """Return the folder that an entry is; an archive is read for it."""
    if entry.kind is Kind.FOLDER or not archive_suffix(entry.name):
        return entry

    def wanted(parts: Sequence[str]) -> bool:
        return parts[-1] == SUBMISSION_FILE and len(parts) > 1 and parts[-2] in ids

    return entry.unpacked(wanted, MAX_SOURCE_BYTES)


def _students(found: Entry, is_archive: bool, ids: Sequence[str]) -> list[Entry]:
    """Return what to list of a folder: itself if it is one submission, else those in it."""
    inside = [child for child in found.children() if _may_be_submission(child)]
    works = [child for child in inside if _is_submission(child, ids)]
    if _work_in(found, ids):
        return inside if len(works) > 1 else [found]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER and not works:
        wrapped = _students_of_class(inside[0], ids)
        inside = wrapped or inside
        works = wrapped
    folders = [child for child in inside if child.kind is not Kind.OTHER]
    return [found] if is_archive and len(folders) < 2 else inside


def _students_of_class(folder: Entry, ids: Sequence[str]) -> list[Entry]:
    """Return what a folder holds if that is a class, of two submissions or more."""
    with suppress(Refused):
        inside = [child for child in folder.children() if _may_be_submission(child)]
        if not _work_in(folder, ids) and sum(_is_submission(c, ids) for c in inside) > 1:
            return inside
    return []


def _may_be_submission(entry: Entry) -> bool:
    """Tell whether a class lists it: all but plain files, so that nobody vanishes unnoticed."""
    return entry.kind is not Kind.FILE or bool(archive_suffix(entry.name))


def _is_submission(entry: Entry, ids: Sequence[str]) -> bool:
    """Tell whether an entry of a class is a submission by the look of it."""
    if entry.kind is Kind.FILE:
        return bool(archive_suffix(entry.name))
    with suppress(Refused):
        own = {_PROBLEMS, *ids}
        return entry.kind is Kind.FOLDER and entry.name not in own and bool(_work_in(entry, ids))
    return False


def _handed_in_as(entry: Entry) -> str:
    return entry.name.removesuffix(archive_suffix(entry.name)) or entry.name


def _free_name(handed_in_as: str, taken: Iterable[str]) -> str:
    """Return a name for result files that no other submission has, whatever it is called."""
    safe = _UNSAFE.sub("_", handed_in_as)[:100].strip(" .") or "submission"
    lowered = {name.lower() for name in taken}
    candidates = [safe, *(f"{safe}-{n}" for n in range(2, len(lowered) + 3))]
    return next(name for name in candidates if name.lower() not in lowered)


# Where in a submission the work is


def _work_in(folder: Entry, ids: Sequence[str]) -> Entry | None:
    """Return what holds problems' folders: the folder itself or its `problems`."""
    children = folder.children()
    if any(child.name in ids and child.kind is not Kind.FILE for child in children):
        return folder
    below = [c for c in children if c.name == _PROBLEMS and c.kind is Kind.FOLDER]
    return _work_in(below[0], ids) if below and folder.name != _PROBLEMS else None


def _locate(folder: Entry, ids: Sequence[str]) -> tuple[Entry, list[str]]:
    """Return what holds the problems' folders of a submission, and what to say about that.

    It is the folder itself, its `problems`, the only folder one level down that has either, or the
    only archive in it, in this order.

    Raises:
        Refused: the folder can't be read, or more than one place could be meant.
    """
    folder.check_names()
    children = folder.children()
    below = {c.name: work for c in children if (work := _work_below(c, ids))}
    if work := _work_in(folder, ids):
        if work is folder and any(c.name == _PROBLEMS for c in children):
            below[_PROBLEMS] = work
        return work, [f"What is in {_listed(below)} was not read."] if below else []
    if len(below) > 1:
        raise Refused(f"has work in {_listed(below)}; which one counts can't be known, so keep one")
    for name, work in below.items():
        usual = _is_archive_of_one_folder(folder)
        return work, [] if usual else [f"The work is one level down, in {name!a}."]
    return _locate_otherwise(folder, children, ids)


def _locate_otherwise(
    folder: Entry, children: Sequence[Entry], ids: Sequence[str]
) -> tuple[Entry, list[str]]:
    """Look for an archive in a submission without a problem's folder, or for what went wrong."""
    if any(c.name == SUBMISSION_FILE for c in children):
        raise Refused(f"has a {SUBMISSION_FILE} that stands in no folder such as {ids[0]}")
    archives = [c for c in children if c.kind is Kind.FILE and archive_suffix(c.name)]
    if _misspelt(folder, ids) or not archives:
        return _likely_place(folder, ids), []
    if len(archives) > 1:
        names = _listed(c.name for c in archives)
        raise Refused(f"has the archives {names}; which one counts can't be known, so keep one")
    return _locate_in_archive(archives[0], ids)


def _is_archive_of_one_folder(entry: Entry) -> bool:
    """Tell whether it is what one gets who packs a folder."""
    is_archive = isinstance(entry, InArchive) and bool(archive_suffix(entry.name))
    return is_archive and sum(child.kind is Kind.FOLDER for child in entry.children()) == 1


def _work_below(entry: Entry, ids: Sequence[str]) -> Entry | None:
    if entry.kind is not Kind.FOLDER or entry.name in {_PROBLEMS, *ids}:
        return None
    with suppress(Refused):
        return _work_in(entry, ids)
    return None


def _locate_in_archive(archive: Entry, ids: Sequence[str]) -> tuple[Entry, list[str]]:
    try:
        work, notes = _locate(_opened(archive, ids), ids)
    except Refused as refused:
        raise BadArchive(f"has the archive {archive.name!a}, which {refused}") from None
    return work, [f"The work is in the archive {archive.name!a}.", *notes]


def _likely_place(folder: Entry, ids: Sequence[str]) -> Entry:
    """Return where the problems' folders should have stood, to say what is there instead."""
    folders = {c.name: c for c in folder.children() if c.kind is Kind.FOLDER}
    if _PROBLEMS in folders:
        return folders[_PROBLEMS]
    if len(folders) == 1 and not _misspelt(folder, ids):
        return next(iter(folders.values()))
    return folder


def _misspelt(folder: Entry, ids: Sequence[str]) -> list[str]:
    """Return a sentence about folders whose names are nearly a problem's."""
    notes = []
    for child in folder.children():
        if child.kind is Kind.FOLDER and child.name not in ids:
            for near in difflib.get_close_matches(child.name.lower(), ids, n=1, cutoff=0.8):
                notes.append(f"There is a folder {child.name!a}; did you mean {near}?")
    return notes[:_NAMES_SHOWN]


def _listed(names: Iterable[str]) -> str:
    shown = sorted(names)
    more = len(shown) - _NAMES_SHOWN
    rest = [f"{more} more"] if more > 0 else []
    return " and ".join([*(ascii(name) for name in shown[:_NAMES_SHOWN]), *rest])


# What is read of one


def _read_submission(entry: Entry, name: str, ids: Sequence[str]) -> Submission:
    handed_in_as = _handed_in_as(entry)
    notes = [] if handed_in_as == name else [f"It was handed in as {handed_in_as!a}."]
    try:
        work, about = _locate(_opened(entry, ids), ids)
        folders = {child.name: child for child in work.children()}
        notes += about + _misspelt(work, ids)
    except Refused as refused:
        unread = StudentFile(None, refused.sentence(ascii(entry.name)), bad=True)
        return Submission(name, dict.fromkeys(ids, unread), notes)
    files = {id: _read_problem(folders.get(id), id, notes) for id in ids}
    return Submission(name, files, notes)


def _read_problem(folder: Entry | None, id: str, notes: list[str]) -> StudentFile:
    """Read one problem's file; add to the notes what else could have been meant."""
    if folder is None or folder.kind is Kind.FILE:
        return StudentFile(None, f"There is no folder {id} in the submission.")
    try:
        inside = {child.name: child for child in folder.children()}
    except Refused as refused:
        return StudentFile(None, refused.sentence(id), bad=True)
    copies = _copies(inside.values())
    if SUBMISSION_FILE not in inside:
        near = (
            f" There is {_listed(copies)}: it has to be called {SUBMISSION_FILE} and stand in {id} "
            "itself."
        )
        missing = f"There is no {SUBMISSION_FILE} in {id}.{near if copies else ''}"
        return StudentFile(None, missing)
    if copies:
        notes.append(f"{id}: {SUBMISSION_FILE} was read, but not {_listed(copies)}.")
    return _read_file(inside[SUBMISSION_FILE], id)


def _copies(inside: Iterable[Entry]) -> list[str]:
    """Return the files that could have been meant. Which one was, only the student knows."""
    copies = []
    for child in inside:
        if child.kind is Kind.FILE and _is_near(child.name):
            copies.append(child.name)
        elif child.kind is Kind.FOLDER:
            with suppress(Refused):
                names = {below.name for below in child.children()}
                copies += [f"{child.name}/{SUBMISSION_FILE}"] if SUBMISSION_FILE in names else []
    return copies


def _is_near(name: str) -> bool:
    """Tell whether a name is nearly `problem.py`, or that of a copy of it."""
    if name == SUBMISSION_FILE or name.startswith("test_"):
        return False
    stem, ending = SUBMISSION_FILE.split(".")
    is_copy = stem in name.lower() and name.lower().endswith(f".{ending}")
    return is_copy or difflib.SequenceMatcher(None, name, SUBMISSION_FILE).ratio() > 0.8


def _read_file(file: Entry, folder_name: str) -> StudentFile:
    try:
        return StudentFile(file.read(MAX_SOURCE_BYTES))
    except Refused as refused:
        reason = refused.sentence(f"{file.name} in {folder_name}")
        return StudentFile(None, reason, bad=True)
