"""Choose the file of each problem in a submission, by one rule at every depth.

The problem of a file is given by its own name, else by the nearest folder around it, else by the
instructor. Of a problem's files, stubs and empty files are ignored; of the others, the one in the
clearest place is read:

- `01-name/problem.py`, then `problems/01-name/problem.py`, then the same deeper down;
- `name.py`, or `problem.py` if the problem is given, then the same deeper down;
- a copy or a misspelling of such a name;
- any other Python file.

Of two files in equally clear places none is read. Archives are opened if the folders lack a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache

from grader.course import SUBMISSION_FILE
from grader.intake.collect import PythonFile, SubmittedFiles, collect, open_archives
from grader.intake.handed_in import StudentFile
from grader.intake.limits import MAX_SOURCE_BYTES
from grader.intake.problem_names import Problems, is_bare
from grader.intake.tree import BadArchive, Refused, TreeEntry, archive_suffix
from grader.text import quoted, some

_SHOWN = 20
_QUESTIONS = 3

_A_NOTEBOOK = f"A notebook is not graded: what its code cells hold has to be in {SUBMISSION_FILE}."


@dataclass
class LocatedFiles:
    """The files of a submission by problem.

    Attributes:
        files: the file of each problem that is searched for.
        notes: sentences about how they were found.
        unused: the paths of the files that were not read.
        is_untold: whether the problem of a Python file in it is unknown.
    """

    files: dict[str, StudentFile] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    is_untold: bool = False


def locate(folder: TreeEntry, problems: Problems, told: str = "") -> LocatedFiles:
    """Return the file of each problem in a submission.

    Args:
        folder: the submission.
        problems: the problems to search for.
        told: the problem that the name of the upload indicates.

    Raises:
        Refused: the submission cannot be read.
    """
    if folder.leads_out:
        raise BadArchive(folder.leads_out)
    found = collect(folder, problems, told)
    choice = _ClearestFile(found, problems)
    if found.archives and not all(map(choice.is_written, problems.sought)):
        open_archives(found, problems)
    return _located(found, choice, problems)


class _ClearestFile:
    """Choose and read a file for each problem."""

    def __init__(self, found: SubmittedFiles, problems: Problems) -> None:
        self._found = found
        self._problems = problems
        self.read = cache(lambda each: read_file(each.entry, each.problem))

    def is_written(self, id: str) -> bool:
        """Return whether a problem has a file that is neither empty nor the stub."""
        return any(map(self.has_work, self.clearest(id)))

    def clearest(self, id: str) -> list[PythonFile]:
        """Return the files in the clearest place that has a written file, each content once."""
        own = [each for each in self._found.candidates if each.problem == id]
        places = sorted({each.place for each in own})
        clearest = [[each for each in own if each.place == place] for place in places]
        written = ([each for each in files if self.has_work(each)] for files in clearest)
        files = next(filter(None, written), clearest[0] if clearest else [])
        return list({self.read(each).source or each: each for each in files}.values())

    def has_work(self, candidate: PythonFile) -> bool:
        """Return whether a file is neither empty nor the stub; True if it cannot be read."""
        source = self.read(candidate).source
        return source is None or not self._problems.is_unwritten(candidate.problem, source)


def read_file(entry: TreeEntry, place: str) -> StudentFile:
    """Return a file with its bytes, or the reason why it cannot be read.

    Args:
        entry: the file.
        place: the name of its folder, for messages.
    """
    name = f"{entry.name} in {place}" if place else entry.name
    try:
        source = entry.read(MAX_SOURCE_BYTES)
    except Refused as refused:
        return StudentFile(None, refused.sentence(name), bad=True)
    if kind := _foreign_kind(source):
        return StudentFile(None, f"{name} is {kind}, and no Python file.", bad=True)
    return StudentFile(source)


_STARTS = {
    b"pk\x03\x04": "an archive or an office document",
    b"\xd0\xcf\x11\xe0": "an office document",
    b"%pdf": "a PDF document",
    b"{\\rtf": "a text of a word processor",
    b"<!doctype html": "a web page",
    b"<html": "a web page",
}


def _foreign_kind(source: bytes) -> str:
    """Return the kind of a file that is not Python, such as a notebook; empty if it may be."""
    start = source[:200].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith(b"{") and b'"nbformat"' in source and b'"cells"' in source:
        return "a notebook"
    return next((kind for mark, kind in _STARTS.items() if start.startswith(mark)), "")


def _located(found: SubmittedFiles, choice: _ClearestFile, problems: Problems) -> LocatedFiles:
    located = LocatedFiles()
    settled: set[PythonFile] = set()
    for id in problems.sought:
        clearest = choice.clearest(id)
        settled |= {*clearest}
        if len(clearest) == 1:
            located.files[id] = choice.read(clearest[0])
            located.notes += _how_read(clearest[0])
        elif clearest:
            names = _listed(each.path for each in clearest)
            reason = f"{id} could be {names}; which one counts can't be known, so keep one."
            located.files[id] = StudentFile(None, reason, bad=True)
        else:
            located.files[id] = _none(id, found, problems)
    located.notes = list(dict.fromkeys(located.notes))
    left = [
        each.path
        for each in found.candidates
        if each not in settled
        and not (each.problem in problems.others and each.is_obvious)
        and (not is_bare(each.entry.name) or choice.has_work(each))
    ]
    lacks = not any(file.source for file in located.files.values())
    others = [p for p in found.others if lacks or _is_notebook(p) or ".py" in p.lower()]
    located.notes += _questions(found, problems)
    if left or others:
        located.notes.append(f"Not read: {_listed([*left, *others])}.{_about(others)}")
    located.is_untold = any(not each.problem for each in found.candidates)
    located.unused = [*left, *found.others, *(path for _, path, _ in found.archives)]
    return located


def _how_read(file: PythonFile) -> list[str]:
    """Return a sentence about a file with an unexpected path or name."""
    if not file.is_obvious:
        return [f"{quoted(file.path)} was read as {file.problem}."]
    kind = "archive" if archive_suffix(file.work) else "folder"
    return [f"The work is in the {kind} {quoted(file.work)}."] if file.work else []


def _none(id: str, found: SubmittedFiles, problems: Problems) -> StudentFile:
    """Return a missing file of a problem, with the reason."""
    if reason := found.refused.get(id) or found.refused.get(""):
        return StudentFile(None, reason, bad=True)
    if id in found.folders:
        return StudentFile(None, f"There is no {SUBMISSION_FILE} in {id}.")
    if problems.given:
        foreign = [each for each in found.candidates if each.problem in problems.others]
        other = _for_another(foreign[0]) if foreign else ""
        reason = f"There is no {SUBMISSION_FILE} and no folder {id} in the submission.{other}"
        return StudentFile(None, reason)
    untold = [each.path for each in found.candidates if not each.problem]
    if untold and all(each.problem == "" for each in found.candidates):
        reason = (
            f"It is not known which problem is in {_listed(untold)}: no folder around it is called "
            f"such as {id}, and it has no name such as {id}.py."
        )
        return StudentFile(None, reason, bad=True)
    return StudentFile(None, f"There is no folder {id} in the submission.")


def _questions(found: SubmittedFiles, problems: Problems) -> list[str]:
    """Return questions about names that are similar to those of problems."""
    untold = [each for each in found.candidates if not each.problem][:_QUESTIONS]
    folders = [*found.misspelt.items()][:_QUESTIONS]
    return [
        *(f"There is a folder {quoted(name)}; did you mean {id}?" for name, id in folders),
        *(
            f"Did you mean {near} by {quoted(each.path)}?"
            for each in untold
            if (near := problems.nearly(each.entry.name))
        ),
    ]


def _for_another(file: PythonFile) -> str:
    return f" {quoted(file.path)} is for {file.problem}, which is not graded now."


def _is_notebook(path: str) -> bool:
    return path.lower().endswith(".ipynb")


def _about(paths: Sequence[str]) -> str:
    """Return an instruction for notebooks; empty if there are none."""
    return f" {_A_NOTEBOOK}" if any(map(_is_notebook, paths)) else ""


def _listed(paths: Iterable[str]) -> str:
    return some([quoted(path) for path in sorted(paths)], _SHOWN)
