"""What stands at a path that the instructor gave: a download, a class or one submission.

A path that can't be graded is the instructor's to mend. Only where several are given, as the
shell makes of `class/*`, one that is there and can't be read is a row with its reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from grader.course import SUBMISSION_FILE
from grader.errors import SubmissionError
from grader.intake import disk, remarks
from grader.intake.archives.kinds import ARCHIVE_SUFFIXES, archive_suffix
from grader.intake.class_folder import has_work, submissions_in
from grader.intake.layout import Layout, plain_work, unmatched_file
from grader.intake.platforms.registry import recognise
from grader.intake.problem_names import Problems
from grader.intake.survey import Survey, survey
from grader.intake.tree import IS_LINK, BadArchive, Entry, Kind, Refused
from grader.intake.wanted import wanted


@contextmanager
def opened_path(path: Path, problems: Problems, *, several: bool) -> Iterator[Layout]:
    """Give who handed in what at a path; an archive stays open meanwhile.

    Args:
        path: what the instructor gave.
        problems: those of the course.
        several: whether more paths were given.

    Raises:
        SubmissionError: it is neither a folder nor an archive, or there is nothing in it.
    """
    found = _given(path, problems, several=several)
    with ExitStack() as stack:
        if found.kind is Kind.FILE:
            try:
                opening = disk.held_open(path.resolve(), wanted(problems))
                found = stack.enter_context(opening)
            except BadArchive as bad:
                found = Entry(found.name, Kind.OTHER, fault=str(bad), is_packed=True)
        yield _layout_at(path, found, problems, several=several)


def _given(path: Path, problems: Problems, *, several: bool) -> Entry:
    try:
        is_folder = stat.S_ISDIR(path.stat().st_mode)
    except OSError as error:
        if several and (unread := _unread(path, error)):
            return unread
        missing = isinstance(error, FileNotFoundError)
        what = "does not exist" if missing else f"can't be read ({error.strerror})"
        raise SubmissionError(f"{path} {what}; {_what_to_give(problems)}") from None
    if not is_folder and not archive_suffix(path.name):
        what = "is not a folder or an archive"
        raise SubmissionError(f"{path} {what}; {_what_to_give(problems)}")
    return disk.entry_at(path.resolve(), Kind.FOLDER if is_folder else Kind.FILE)


def _unread(path: Path, error: OSError) -> Entry | None:
    """Return what is there though it can't be read; None if nothing is."""
    if os.path.islink(path):
        return Entry(path.name, Kind.LINK, fault=IS_LINK)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return None
    return Entry(path.name, Kind.OTHER, fault=f"can't be read ({error.strerror})")


def _layout_at(path: Path, found: Entry, problems: Problems, *, several: bool) -> Layout:
    if found.kind is not Kind.FOLDER:
        return Layout("", [plain_work(found)])
    try:
        layout = _recognised(found, problems, several=several)
    except Refused as refused:
        if several:
            return Layout("", [plain_work(found)])
        raise SubmissionError(f"{path} {refused}; {_what_to_give(problems)}") from None
    if not layout.works:
        hint = ""
        if has_work(survey(found, problems.known), bare=True):
            hint = f". It has a {SUBMISSION_FILE}. {remarks.name_it(problems)}"
        raise SubmissionError(f"{path} holds no submissions; {_what_to_give(problems)}{hint}")
    return layout


def _recognised(found: Entry, problems: Problems, *, several: bool) -> Layout:
    here = survey(found, problems.known)
    # A file that tells its problem only because that is given doesn't make it a submission.
    if not has_work(here, bare=False) and (layout := recognise(found, problems)):
        return layout
    students = submissions_in(here, bare=bool(problems.given), several=several)
    layout = Layout("", [plain_work(student) for student in students])
    if all(student is not found for student in students):
        single = here.single_files(problems.given)
        layout.unmatched = [unmatched_file(file.name, ()) for file, _ in single]
    if len(students) == 1 and not problems.given:
        layout.notes = _hidden_class(here, problems, several=several)
    return layout


def _hidden_class(here: Survey, problems: Problems, *, several: bool) -> list[str]:
    """Return a hint if what seems to be one submission is a class once its problem is given."""
    given = submissions_in(here, bare=True, several=several)
    return [remarks.have_bare_files(len(given), problems)] if len(given) > 1 else []


def _what_to_give(problems: Problems) -> str:
    return (
        f"give a submission, which is a folder or an archive ({', '.join(ARCHIVE_SUFFIXES)}) with "
        f"{problems.known[0]}/{SUBMISSION_FILE} and so on in it, or a folder of submissions"
    )
