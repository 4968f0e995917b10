"""Collect the files of a submission, each with the problem that its path and name indicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from grader.course import NOTEBOOK, SUBMISSION_FILE
from grader.intake import limits
from grader.intake.limits import MAX_DEPTH, MAX_SOURCE_BYTES
from grader.intake.platforms import LISTS
from grader.intake.problem_names import (
    ALL_PROBLEMS,
    Problems,
    is_bare,
    is_nearly_bare,
    is_python,
)
from grader.intake.tree import BadArchive, Kind, Refused, TreeEntry, is_minor
from grader.text import quoted, some

MISSPELT = "?"
"""The problem of a file in a folder with a name that is nearly that of a problem."""

_IN_FOLDER, _DEEPER, _NAMED, _NEARLY, _ANY = 0, 2, 3, 5, 6
_PACKED = 10
"""Places of files, the clearest first; `_PACKED` is added for those in archives."""

_COURSES = {"shared", "grader", "solutions", "students"}
"""Folders of the course that contain no problems."""

_MOST_ARCHIVES = 10
_MOST_COMPARED = 1000
"""The most names that are compared with those of problems, because comparing is slow."""
_LIST_DEPTH = 2  # a platform's list of students lies in the folder or the only one in it


@dataclass(frozen=True)
class PythonFile:
    """A Python file that may answer a problem.

    Attributes:
        path: its path in the submission.
        entry: the file.
        problem: its problem; empty if unknown.
        place: how clear the problem is; less is clearer.
    """

    path: str
    entry: TreeEntry
    problem: str
    place: int

    @property
    def is_obvious(self) -> bool:
        """Whether it has the expected name."""
        return self.entry.name == SUBMISSION_FILE

    @property
    def work(self) -> str:
        """The folder or archive of the course's files, if that is not the submission itself."""
        folders = self.path.split("/")[:-1]
        for course in (self.problem, ALL_PROBLEMS):
            folders = folders[:-1] if folders[-1:] == [course] else folders
        return "/".join(folders)


@dataclass
class SubmittedFiles:
    """The files of a submission.

    Attributes:
        candidates: the Python files.
        others: the paths of all other files, without those of tools.
        misspelt: the problem by folder, for folders with nearly the name of a problem.
        refused: the reason by problem why its folder cannot be read; the key "" is for archives.
        folders: the problems that have a folder.
        archives: archives that are not opened yet, with their paths and problems.
    """

    candidates: list[PythonFile] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    misspelt: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    archives: list[tuple[TreeEntry, str, str]] = field(default_factory=list)
    entries: int = 0
    compared: int = 0

    def may_compare(self) -> bool:
        """Return whether one more name may be compared, and count it."""
        self.compared += 1
        return self.compared <= _MOST_COMPARED


def wanted(parts: Sequence[str]) -> int:
    """Return the largest size in bytes at which an archive's member is read; 0 for never."""
    name = parts[-1]
    if name in LISTS:
        return LISTS[name] if len(parts) <= _LIST_DEPTH else 0
    return MAX_SOURCE_BYTES if is_python(name) and not is_minor(name) else 0


class _TooMuch(Refused):
    """A submission has too many entries."""


@dataclass(frozen=True)
class _Around:
    """The folders around a file.

    Attributes:
        path: their path, as shown in messages.
        way: the folders below the root of the course's files.
        told: the problem that they indicate.
        place: the number to add to the place of each file.
    """

    path: str = ""
    way: tuple[str, ...] = ()
    told: str = ""
    place: int = 0

    def shown(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


def collect(folder: TreeEntry, problems: Problems, told: str = "") -> SubmittedFiles:
    """Return the files of a submission without opening archives in it.

    Args:
        folder: the submission.
        problems: the problems of the course.
        told: the problem that the name of the upload indicates.

    Raises:
        Refused: the submission cannot be read.
    """
    found = SubmittedFiles()
    _collect_work(folder, problems, _Around(told=told), found)
    return found


def open_archives(found: SubmittedFiles, problems: Problems) -> None:
    """Add the files of the archives and of nested archives, as far as these can be opened."""
    archives, found.archives = found.archives, []
    if len(archives) > _MOST_ARCHIVES:
        names = some([quoted(path) for _, path, _ in archives], _MOST_ARCHIVES)
        found.refused.setdefault("", f"There are the archives {names}; keep one.")
        return
    for archive, path, told in archives:
        try:
            opened = archive.opened(wanted)
            if opened.leads_out:
                raise BadArchive(opened.leads_out)
            _collect_work(opened, problems, _Around(path, (), told, _PACKED), found)
        except Refused as refused:
            found.refused.setdefault("", BadArchive(str(refused)).sentence(quoted(path)))
    if found.archives:
        open_archives(found, problems)


def _collect_work(
    folder: TreeEntry, problems: Problems, around: _Around, found: SubmittedFiles
) -> None:
    """Add the files of a submission or an archive; skip folders that contain only one folder."""
    way: list[str] = []
    while len(way) < MAX_DEPTH:
        inside = [each for each in folder.children() if not _is_minor(each)]
        if len(inside) != 1 or inside[0].kind is not Kind.FOLDER:
            break
        name = inside[0].name
        if name == ALL_PROBLEMS or problems.of_folder(name) or problems.nearly_folder(name):
            break
        folder = inside[0]
        way.append(name)
    if way and not (folder.is_packed and len(way) == 1 and not around.path):
        around = replace(around, path="/".join(filter(None, [around.path, *way])))
    _collect(folder, problems, around, found)


def _is_minor(entry: TreeEntry) -> bool:
    return entry.kind is Kind.FILE and is_minor(entry.name)


def _collect(folder: TreeEntry, problems: Problems, around: _Around, found: SubmittedFiles) -> None:
    children = folder.children()
    found.entries += len(children)
    if found.entries > limits.MAX_ENTRIES:
        raise _TooMuch(f"holds more than {limits.MAX_ENTRIES:,} files and folders")
    is_course = any(child.name in {ALL_PROBLEMS, *problems.known} for child in children)
    for child in children:
        path = around.shown(child.name)
        if is_course and child.name in _COURSES:
            continue
        is_folder = child.kind is Kind.FOLDER or child.name in problems.known
        if is_folder and not is_bare(child.name):
            _collect_folder(child, problems, replace(around, path=path), found)
        elif child.is_archive:
            told = _told(child.name, around.told, problems, found)
            found.archives.append((child, path, told))
        elif is_python(child.name) and not is_minor(child.name):
            found.candidates.append(_candidate(child, problems, replace(around, path=path), found))
        elif not is_minor(child.name) and child.name != NOTEBOOK:
            found.others.append(path)


def _collect_folder(
    folder: TreeEntry, problems: Problems, around: _Around, found: SubmittedFiles
) -> None:
    """Add the files of a folder. If it cannot be read, record this as its problem's reason."""
    id = problems.of_folder(folder.name)
    found.folders |= {id} - {""}
    told = _told(folder.name, around.told, problems, found)
    try:
        if len(around.way) < MAX_DEPTH:
            way = (*around.way, folder.name)
            _collect(folder, problems, replace(around, way=way, told=told), found)
    except _TooMuch:
        raise
    except Refused as refused:
        if folder.name == ALL_PROBLEMS:
            raise
        if id:
            found.refused[id] = refused.sentence(id)
        else:
            found.others.append(around.path)


def _told(name: str, around: str, problems: Problems, found: SubmittedFiles) -> str:
    """Return the problem of the files in a folder or an archive of this name."""
    if id := problems.of_folder(name):
        return id
    if found.may_compare() and (near := problems.nearly_folder(name)):
        if problems.given:
            return near
        found.misspelt[name] = near
        return MISSPELT
    return around


def _candidate(
    file: TreeEntry, problems: Problems, around: _Around, found: SubmittedFiles
) -> PythonFile:
    by_name = problems.of_file(file.name)
    problem = by_name or around.told
    near = problems.nearly(file.name) if found.may_compare() else ""
    if not problem and problems.given:
        problem = near or problems.given
    place = around.place + _place(file.name, around.way, problem, problems, bool(by_name), near)
    return PythonFile(around.path, file, problem, place)


def _place(
    name: str, way: tuple[str, ...], problem: str, problems: Problems, by_name: bool, near: str
) -> int:
    """Return how clear it is that a file belongs to a problem; less is clearer."""
    if name == SUBMISSION_FILE and way[-1:] == (problem,):
        tops = ((problem,), (ALL_PROBLEMS, problem))
        return _IN_FOLDER + tops.index(way) if way in tops else _DEEPER
    if by_name or is_bare(name):
        return _NAMED + (not set(way) <= {ALL_PROBLEMS})
    return _NEARLY if is_nearly_bare(name) or near == problem else _ANY
