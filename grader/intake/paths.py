"""Find the downloads, classes or single submissions at the paths that the instructor gives.

A single path that cannot be graded is an error. Several paths may be students' folders, as in
`class/*`: an unreadable one becomes a row with the reason, and a path is a class only if all are.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePath

from grader.course import SUBMISSION_FILE
from grader.errors import SubmissionError
from grader.intake import disk, notices
from grader.intake.class_folder import has_work, python_files, submissions_in
from grader.intake.collect import wanted
from grader.intake.layout import Layout, Work, plain_work, unmatched_file
from grader.intake.platforms import recognise, recognise_part
from grader.intake.problem_names import ALL_PROBLEMS, Problems
from grader.intake.tree import (
    ARCHIVE_SUFFIXES,
    IS_LINK,
    BadArchive,
    Kind,
    Refused,
    TreeEntry,
    archive_suffix,
    is_minor,
    without_suffix,
)
from grader.text import quoted

_AS_ONE = (
    "It seems to be {what}, but counts as one submission, as it was given beside single ones; "
    "give it by itself."
)


@contextmanager
def opened_path(
    path: Path, problems: Problems, *, several: bool, as_one: bool = False
) -> Iterator[Layout]:
    """Yield the submissions at a path. An archive is open inside the context.

    Args:
        path: the path that the instructor gave.
        problems: the problems of the course.
        several: whether more paths were given.
        as_one: whether it is one submission, with any content.

    Raises:
        SubmissionError: the path is neither a folder nor an archive, or is empty.
    """
    found = _given(path, problems, several=several)
    if found.kind is Kind.FILE and not archive_suffix(found.name):
        yield Layout("", [], [f"{quoted(str(path))} was not used; {_no_submission()}."])
        return
    with _opened(path, found, problems) as folder:
        if as_one:
            yield _one_submission(folder, problems)
        else:
            yield _layout_at(path, found, folder, problems, several=several)


def are_all_classes(paths: Sequence[Path], problems: Problems) -> bool:
    """Return whether each readable path is a class or a platform's download.

    A class has two submissions or more.
    """
    for path in paths:
        found = _given(path, problems, several=True)
        if found.kind is Kind.FOLDER or archive_suffix(found.name):
            with _opened(path, found, problems) as folder:
                if folder.kind is Kind.FOLDER and not _seems(folder, problems):
                    return False
    return True


@contextmanager
def _opened(path: Path, found: TreeEntry, problems: Problems) -> Iterator[TreeEntry]:
    """Give the folder at a path; if it is an archive, as long as that is open."""
    with ExitStack() as stack:
        if found.kind is Kind.FILE:
            try:
                opening = disk.held_open(path.resolve(), wanted)
                found = stack.enter_context(opening)
            except BadArchive as bad:
                found = TreeEntry(found.name, Kind.OTHER, fault=str(bad), is_packed=True)
        yield found


def _given(path: Path, problems: Problems, *, several: bool) -> TreeEntry:
    if several and os.path.islink(path):
        return TreeEntry(path.name, Kind.LINK, fault=IS_LINK)
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        if several and not missing:
            return TreeEntry(path.name, Kind.OTHER, fault=f"can't be read ({error.strerror})")
        what = "does not exist" if missing else f"can't be read ({error.strerror})"
        raise SubmissionError(f"{path} {what}; {_what_to_give(problems)}") from None
    if not is_folder and not archive_suffix(path.name) and not several:
        what = "is not a folder or an archive"
        raise SubmissionError(f"{path} {what}; {_what_to_give(problems)}")
    return disk.entry_at(path.resolve(), Kind.FOLDER if is_folder else Kind.FILE)


def _one_submission(found: TreeEntry, problems: Problems) -> Layout:
    what = _seems(found, problems) if found.kind is Kind.FOLDER else ""
    notes = [_AS_ONE.format(what=what)] if what else []
    return Layout("", [_itself(found, *notes)])


def _seems(found: TreeEntry, problems: Problems) -> str:
    """Return the kind of a folder with more than one submission; empty for any other."""
    with suppress(Refused):
        layout = _recognised(found, problems, several=True)
        if layout.title:
            return f"a {layout.title}"
        return "a class" if len(layout.works) > 1 else ""
    return ""


def _layout_at(
    path: Path, given: TreeEntry, found: TreeEntry, problems: Problems, *, several: bool
) -> Layout:
    """Return the submissions at a path.

    Args:
        path: the path that the instructor gave.
        given: the entry at the path.
        found: the entry as a folder; the same unless it is an archive.
        problems: the problems of the course.
        several: whether more paths were given.
    """
    if found.kind is not Kind.FOLDER:
        return _alone(path, given, Layout("", [_itself(found)]), problems, several=several)
    try:
        layout = _recognised(found, problems, several=several)
    except Refused as refused:
        if several:
            return Layout("", [_itself(found)])
        raise SubmissionError(f"{path} {refused}; {_what_to_give(problems)}") from None
    if not several and not layout.title:
        _refuse_flat(path, found, problems)
    if not layout.works:
        hint = ""
        if has_work(found, problems, bare=True):
            hint = f". It has a {SUBMISSION_FILE}. {notices.name_it(problems)}"
        raise SubmissionError(f"{path} holds no submissions; {_what_to_give(problems)}{hint}")
    return _alone(path, given, layout, problems, several=several)


def _refuse_flat(path: Path, found: TreeEntry, problems: Problems) -> None:
    """Refuse the files of several students that are in one folder.

    Raises:
        SubmissionError: there are only such files.
    """
    children = found.children()
    code = python_files(children)
    is_flat = len(code) > 1 and all(each.is_plain_file for each in children)
    if is_flat and not has_work(found, problems, bare=True):
        raise SubmissionError(
            f"{path} holds {len(code)} Python files and no folders. If they are several "
            "students', put what each student handed in into a folder of the student's name, and "
            "give the folder of these; if not, keep the one that is to be graded."
        )


def _alone(
    path: Path, given: TreeEntry, layout: Layout, problems: Problems, *, several: bool
) -> Layout:
    """Return what one student's folder or archive is in the unpacked download around it, if any."""
    if several or layout.title or len(layout.works) > 1:
        return layout
    around = path.resolve().parent
    with suppress(Refused):
        above = disk.entry_at(around.parent, Kind.FOLDER)
        part = recognise_part(given, disk.entry_at(around, Kind.FOLDER), above, problems)
        return part or layout
    return layout


def _recognised(found: TreeEntry, problems: Problems, *, several: bool) -> Layout:
    # A file that tells its problem only because that is given doesn't make it a submission.
    if not has_work(found, problems, bare=False) and (layout := recognise(found, problems)):
        return layout
    bare = bool(problems.given)
    around, students = submissions_in(found, problems, bare=bare, several=several)
    works = [_itself(found) if student is found else plain_work(student) for student in students]
    layout = Layout("", works)
    if all(student is not found for student in students):
        layout.unmatched = [_loose_file(file.name) for file in _code(around)]
    if len(students) == 1 and not problems.given:
        layout.notes = _hidden_class(found, problems, several=several)
    if students == [found] and not several and not layout.notes:
        layout.notes = _maybe_class_of_one(found, problems, works[0].name)
    return layout


def _code(folder: TreeEntry) -> list[TreeEntry]:
    """Return the files in a folder that look like code, such as `bob.py.txt` or a notebook."""
    plain = [each for each in folder.children() if each.is_plain_file and not is_minor(each.name)]
    return [each for each in plain if {".py", ".ipynb"} & {*PurePath(each.name.lower()).suffixes}]


def _loose_file(name: str) -> str:
    """Return a sentence about code next to students' folders, which may be a submission."""
    return (
        f"{unmatched_file(name, ())} If it is a student's, put it into a folder with the "
        "student's name."
    )


def _itself(found: TreeEntry, *notes: str) -> Work:
    """Return the entry at a path as one submission."""
    return plain_work(found, *notes, is_archive=found.is_packed)


def _hidden_class(folder: TreeEntry, problems: Problems, *, several: bool) -> list[str]:
    """Return a hint if what seems to be one submission is a class once its problem is given."""
    _, given = submissions_in(folder, problems, bare=True, several=several)
    return [notices.have_untold_files(len(given), problems)] if len(given) > 1 else []


def _maybe_class_of_one(folder: TreeEntry, problems: Problems, name: str) -> list[str]:
    """Return a hint if all of an archive is in one folder, which may be its student's name."""
    inside = [each for each in folder.children() if not is_minor(each.name)]
    if not folder.is_packed or len(inside) != 1 or inside[0].is_plain_file:
        return []
    student = inside[0].name
    if student in {ALL_PROBLEMS, *problems.known}:
        return []
    if without_suffix(student) == name:
        return []
    return [
        f"{quoted(folder.name)} counts as one student's, who is called {quoted(name)} here. "
        f"If {quoted(student)} or a folder in that has the student's name, unpack the archive and "
        "give that."
    ]


def _no_submission() -> str:
    return f"a submission is a folder or an archive ({', '.join(ARCHIVE_SUFFIXES)})"


def _what_to_give(problems: Problems) -> str:
    return (
        f"give a submission, which is a folder or an archive ({', '.join(ARCHIVE_SUFFIXES)}) with "
        f"{problems.known[0]}/{SUBMISSION_FILE} and so on in it, or a folder of submissions"
    )
