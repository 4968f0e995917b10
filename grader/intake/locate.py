"""Choose the file of each problem in a submission.

The problem of a file is determined by the name of the file, or else by the name of the nearest
folder, or else by `--problem`. The depth of the file does not matter. Unchanged stubs and empty
files are ignored. Of the remaining files for a problem, the one with the clearest path is read.
Paths from clear to unclear:

- `01-name/problem.py`, then `problems/01-name/problem.py`, then these names in deeper folders;
- `name.py`, or `problem.py` if the problem is known, then these names in deeper folders;
- a copy or a misspelling of such a file name;
- any other Python file.

If two files have equally clear paths, neither is read. Archives are opened only if the folders
contain no file for some of the problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from grader.course import NOTEBOOK, SUBMISSION_FILE
from grader.intake import limits
from grader.intake.handed_in import StudentFile
from grader.intake.limits import MAX_DEPTH, MAX_SOURCE_BYTES
from grader.intake.opening import open_entry
from grader.intake.platforms import LISTS
from grader.intake.problem_names import (
    ALL_PROBLEMS,
    Problems,
    is_bare,
    is_nearly_bare,
    is_python,
)
from grader.intake.tree import Kind, Refused, TreeEntry, archive_suffix, is_minor
from grader.text import quoted, some

_MISSPELT = "?"
"""The `problem` of files in a folder whose name is only similar to a problem's name."""

_IN_FOLDER, _DEEPER, _NAMED, _NEARLY, _ANY = 0, 2, 3, 5, 6
_PACKED = 10
"""The ranks of paths. The clearest path has rank 0. `_PACKED` is added for a file in an archive."""

_COURSES = {"shared", "grader", "solutions", "students"}
"""The names of the course's folders that contain no problems."""

_MOST_ARCHIVES = 10
_MOST_COMPARED = 1000
"""The maximum number of names to compare with the names of problems. Comparisons are slow."""
_LIST_DEPTH = 2  # a platform's list of students is in the folder or in its only subfolder

_SHOWN = 20
_QUESTIONS = 3

_A_NOTEBOOK = f"A notebook is not graded. Copy the code from its cells to {SUBMISSION_FILE}."


def bytes_to_read(parts: Sequence[str]) -> int:
    """Return the maximum size in bytes at which a member of an archive is read.

    Return 0 if the member is not read.

    Args:
        parts: the parts of the member's path.
    """
    name = parts[-1]
    if name in LISTS:
        return LISTS[name] if len(parts) <= _LIST_DEPTH else 0
    return MAX_SOURCE_BYTES if is_python(name) and not is_minor(name) else 0


@dataclass
class LocatedFiles:
    """The files of a submission, by problem.

    Attributes:
        files: maps the id of each requested problem to its file.
        notes: sentences about which files were chosen.
        unused: the paths of the files that were not read.
        has_unknown_file: whether there is a Python file for which the problem is unknown.
    """

    files: dict[str, StudentFile] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    has_unknown_file: bool = False


def locate(folder: TreeEntry, problems: Problems, problem: str = "") -> LocatedFiles:
    """Return the file of each problem in a submission.

    Args:
        folder: the submission.
        problems: the problems to search for.
        problem: the problem that the name of the upload indicates, or "".

    Raises:
        Refused: the submission cannot be read.
    """
    submitted = _SubmittedFiles(problems)
    submitted.add(folder, _Around(problem=problem))
    choice = _ClearestFile(submitted.candidates, problems)
    if submitted.archives and not all(map(choice.is_written, problems.requested)):
        submitted.open_archives()
    return _located(submitted, choice, problems)


# Collect


@dataclass(frozen=True)
class _PythonFile:
    """A Python file that could be the file of a problem.

    Attributes:
        path: its path in the submission.
        entry: the file.
        problem: the id of its problem; empty if unknown.
        rank: how clearly its path indicates the problem. Lower is clearer.
    """

    path: str
    entry: TreeEntry
    problem: str
    rank: int

    @property
    def is_obvious(self) -> bool:
        """Whether the file has the expected name."""
        return self.entry.name == SUBMISSION_FILE

    @property
    def root(self) -> str:
        """The path of the folder or archive that contains the problems' folders.

        The path is empty for the submission itself.
        """
        folders = self.path.split("/")[:-1]
        for course in (self.problem, ALL_PROBLEMS):
            folders = folders[:-1] if folders[-1:] == [course] else folders
        return "/".join(folders)


@dataclass(frozen=True)
class _Around:
    """The folders that contain a file.

    Attributes:
        path: the path of the innermost folder, as it is shown in messages.
        folders: the names of the folders from the outermost to the innermost. Skipped outer folders
            are left out.
        problem: the problem that the folders indicate, or "".
        rank: a number that is added to the rank of each file in the folders.
    """

    path: str = ""
    folders: tuple[str, ...] = ()
    problem: str = ""
    rank: int = 0

    def shown(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


@dataclass
class _SubmittedFiles:
    """The files of a submission, with the problem that each file's path indicates.

    Attributes:
        problems: the problems of the course.
        candidates: the Python files from which the file of each problem is chosen.
        others: the paths of other files, without files that tools create.
        questions: questions about folders with a name similar to a problem's name.
        refused: maps the id of a problem to the reason why its folder cannot be read. The key ""
            is for archives.
        folders: the ids of the problems that have a folder.
        archives: archives that are not opened yet, as (archive, path, problem id) tuples.
    """

    problems: Problems
    candidates: list[_PythonFile] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    archives: list[tuple[TreeEntry, str, str]] = field(default_factory=list)
    entries: int = 0
    compared: int = 0

    def add(self, folder: TreeEntry, around: _Around) -> None:
        """Add the files of a submission or an archive. Nested archives are not opened.

        Folders that contain only one folder are skipped.

        Raises:
            Refused: the submission cannot be read.
        """
        skipped: list[str] = []
        while len(skipped) < MAX_DEPTH:
            inside = [each for each in folder.children() if not _is_minor_file(each)]
            if len(inside) != 1 or inside[0].kind is not Kind.FOLDER:
                break
            name = inside[0].name
            problems = self.problems
            if name == ALL_PROBLEMS or problems.of_folder(name) or problems.similar_to_folder(name):
                break
            folder = inside[0]
            skipped.append(name)
        if skipped and not (folder.is_packed and len(skipped) == 1 and not around.path):
            around = replace(around, path="/".join(filter(None, [around.path, *skipped])))
        self._add_all(folder.children(), around)

    def open_archives(self) -> None:
        """Add the files of all archives, including nested archives. Skip unreadable archives."""
        archives, self.archives = self.archives, []
        if len(archives) > _MOST_ARCHIVES:
            names = some([quoted(path) for _, path, _ in archives], _MOST_ARCHIVES)
            self.refused.setdefault(
                "", f"The submission contains the archives {names}. Keep only one of them."
            )
            return
        for archive, path, problem in archives:
            before = len(self.candidates)
            try:
                self.add(open_entry(archive, bytes_to_read), _Around(path, (), problem, _PACKED))
            except Refused as refused:
                del self.candidates[before:]
                self.refused.setdefault("", refused.sentence(quoted(path)))
        if self.archives:
            self.open_archives()

    def _add_all(self, children: Sequence[TreeEntry], around: _Around) -> None:
        self.entries += len(children)
        if self.entries > limits.MAX_FILES:
            raise Refused(f"contains more than {limits.MAX_FILES:,} files and folders")
        is_course = any(child.name in {ALL_PROBLEMS, *self.problems.known} for child in children)
        for child in children:
            name, path = child.name, around.shown(child.name)
            if is_course and name in _COURSES:
                continue
            is_folder = child.kind is Kind.FOLDER or name in self.problems.known
            if is_folder:
                self._add_folder(child, replace(around, path=path))
            elif child.is_archive:
                self.archives.append((child, path, self._folders_problem(name, around.problem)))
            elif is_python(name) and not is_minor(name):
                self.candidates.append(self._candidate(child, path, around))
            elif not is_minor(name) and name != NOTEBOOK:
                self.others.append(path)

    def _add_folder(self, folder: TreeEntry, around: _Around) -> None:
        """Add the files of a folder. If it can't be read, keep the reason in `refused`."""
        id = self.problems.of_folder(folder.name)
        self.folders |= {id} - {""}
        problem = self._folders_problem(folder.name, around.problem)
        if len(around.folders) == MAX_DEPTH:
            return
        try:
            children = folder.children()
        except Refused as refused:
            if folder.name == ALL_PROBLEMS:
                raise
            if id:
                self.refused[id] = refused.sentence(id)
            else:
                self.others.append(around.path)
        else:
            folders = (*around.folders, folder.name)
            self._add_all(children, replace(around, folders=folders, problem=problem))

    def _folders_problem(self, name: str, around: str) -> str:
        """Return the problem of the files in a folder or an archive.

        Args:
            name: the name of the folder or archive.
            around: the problem that the outer folders indicate.
        """
        id = self.problems.of_folder(name)
        near = "" if id else self._nearly(self.problems.similar_to_folder, name)
        if near and not self.problems.only:
            self.questions.append(f"There is a folder {quoted(name)}; did you mean {near}?")
            return _MISSPELT
        return id or near or around

    def _nearly(self, compare: Callable[[str], str], name: str) -> str:
        self.compared += 1
        return compare(name) if self.compared <= _MOST_COMPARED else ""

    def _candidate(self, file: TreeEntry, path: str, around: _Around) -> _PythonFile:
        by_name = self.problems.of_file(file.name)
        near = self._nearly(self.problems.similar_to_file, file.name)
        problem = by_name or around.problem
        if not problem and self.problems.only:
            problem = near or self.problems.only
        if file.name == SUBMISSION_FILE and around.folders[-1:] == (problem,):
            tops = ((problem,), (ALL_PROBLEMS, problem))
            is_top = around.folders in tops
            rank = _IN_FOLDER + tops.index(around.folders) if is_top else _DEEPER
        elif by_name or is_bare(file.name):
            rank = _NAMED + (not set(around.folders) <= {ALL_PROBLEMS})
        else:
            rank = _NEARLY if is_nearly_bare(file.name) or near == problem else _ANY
        return _PythonFile(path, file, problem, around.rank + rank)


def _is_minor_file(entry: TreeEntry) -> bool:
    return entry.kind is Kind.FILE and is_minor(entry.name)


# Choose and read


class _ClearestFile:
    """Chooses and reads the file with the clearest path for each problem."""

    def __init__(self, candidates: Sequence[_PythonFile], problems: Problems) -> None:
        self._candidates = candidates
        self._problems = problems
        self.read = cache(lambda each: read_file(each.entry, each.problem))

    def is_written(self, id: str) -> bool:
        """Return whether a problem has a file that is neither empty nor the stub."""
        return any(map(self.has_work, self.clearest(id)))

    def clearest(self, id: str) -> list[_PythonFile]:
        """Return a problem's files with the clearest path. Of several equal files, return one.

        Stubs and empty files are returned only if the problem has no other file.
        """
        of_problem = [each for each in self._candidates if each.problem == id]
        ranks = sorted({each.rank for each in of_problem})
        clearest = [[each for each in of_problem if each.rank == rank] for rank in ranks]
        written = ([each for each in files if self.has_work(each)] for files in clearest)
        files = next(filter(None, written), clearest[0] if clearest else [])
        return list({self.read(each).source or each: each for each in files}.values())

    def has_work(self, candidate: _PythonFile) -> bool:
        """Return True if a file can't be read, or if it is neither empty nor the stub."""
        source = self.read(candidate).source
        return source is None or not self._problems.is_unwritten(candidate.problem, source)


def read_file(entry: TreeEntry, folder: str) -> StudentFile:
    """Return the content of a file, or the reason why it can't be read.

    Args:
        entry: the file.
        folder: the name of its folder, for messages.
    """
    name = f"{entry.name} in {folder}" if folder else entry.name
    try:
        source = entry.read(MAX_SOURCE_BYTES)
    except Refused as refused:
        return StudentFile(None, refused.sentence(name), bad=True)
    if kind := _foreign_kind(source):
        return StudentFile(None, f"{name} is {kind} and not a Python file.", bad=True)
    return StudentFile(source)


_STARTS = {
    b"pk\x03\x04": "an archive or an office document",
    b"\xd0\xcf\x11\xe0": "an office document",
    b"%pdf": "a PDF document",
    b"{\\rtf": "a document of a word processor",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
}


def _foreign_kind(source: bytes) -> str:
    """Return a description of a file that is not Python, such as "a notebook".

    Return "" for a file that may be Python.
    """
    start = source[:200].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith(b"{") and b'"nbformat"' in source and b'"cells"' in source:
        return "a notebook"
    return next((kind for mark, kind in _STARTS.items() if start.startswith(mark)), "")


# Report


def _located(submitted: _SubmittedFiles, choice: _ClearestFile, problems: Problems) -> LocatedFiles:
    located = LocatedFiles()
    settled: set[_PythonFile] = set()
    for id in problems.requested:
        clearest = choice.clearest(id)
        settled |= {*clearest}
        if len(clearest) == 1:
            located.files[id] = choice.read(clearest[0])
            located.notes += _how_read(clearest[0])
        elif clearest:
            names = _listed(each.path for each in clearest)
            reason = f"Several files may be for {id}: {names}. Keep only one of them."
            located.files[id] = StudentFile(None, reason, bad=True)
        else:
            located.files[id] = _missing(id, submitted, problems)
    located.notes = list(dict.fromkeys(located.notes))
    left = [
        each.path
        for each in submitted.candidates
        if each not in settled
        and not (each.problem in problems.others and each.is_obvious)
        and (not is_bare(each.entry.name) or choice.has_work(each))
    ]
    lacks = not any(file.source for file in located.files.values())
    others = [p for p in submitted.others if lacks or _is_notebook(p) or ".py" in p.lower()]
    located.notes += submitted.questions[:_QUESTIONS]
    if left or others:
        about = f" {_A_NOTEBOOK}" if any(map(_is_notebook, others)) else ""
        located.notes.append(f"Not read: {_listed([*left, *others])}.{about}")
    located.has_unknown_file = any(not each.problem for each in submitted.candidates)
    located.unused = [*left, *submitted.others, *(path for _, path, _ in submitted.archives)]
    return located


def _how_read(file: _PythonFile) -> list[str]:
    """Return a sentence about a file if its path or its name is unexpected."""
    if not file.is_obvious:
        return [f"{quoted(file.path)} was read as {file.problem}."]
    kind = "archive" if archive_suffix(file.root) else "folder"
    return [f"The files are in the {kind} {quoted(file.root)}."] if file.root else []


def _missing(id: str, submitted: _SubmittedFiles, problems: Problems) -> StudentFile:
    """Return a `StudentFile` that contains the reason why there is no file for a problem."""
    if reason := submitted.refused.get(id) or submitted.refused.get(""):
        return StudentFile(None, reason, bad=True)
    if id in submitted.folders:
        return StudentFile(None, f"There is no {SUBMISSION_FILE} in {id}.")
    if problems.only:
        reason = f"There is no {SUBMISSION_FILE} and no folder {id} in the submission."
        for file in submitted.candidates:
            if file.problem in problems.others:
                reason += f" {quoted(file.path)} is for {file.problem}, which is not graded now."
                break
        return StudentFile(None, reason)
    unknown = [each.path for each in submitted.candidates if not each.problem]
    if unknown and len(unknown) == len(submitted.candidates):
        # All problems get the same reason, so that it is reported once.
        example = problems.requested[0]
        reason = (
            f"The problem of {_listed(unknown)} is unknown. Submit a folder with a name such as "
            f"{example}, or a file with a name such as {example}.py."
        )
        return StudentFile(None, reason, bad=True)
    return StudentFile(None, f"There is no folder {id} in the submission.")


def _is_notebook(path: str) -> bool:
    return path.lower().endswith(".ipynb")


def _listed(paths: Iterable[str]) -> str:
    return some([quoted(path) for path in sorted(paths)], _SHOWN)
