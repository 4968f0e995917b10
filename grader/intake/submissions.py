"""Find submissions in folders and archives, and read each student's files once.

This module never runs or imports code, unpacks archives to disk, or follows links. It reads only
regular files of limited size, and reports other files. An error in one submission is reported in
the row of this submission, and does not affect other submissions.

`opening` creates a tree of files, `platforms` recognises downloads in the tree, and `locate`
chooses the file of each problem.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePath

from grader.course import SUBMISSION_FILE, Course, Problem
from grader.errors import SubmissionError
from grader.intake.handed_in import Intake, Layout, StudentFile, Submission, UnreadSubmission
from grader.intake.identity import make_unique, result_name
from grader.intake.locate import bytes_to_read, locate, read_file
from grader.intake.opening import entry_at, open_entry, open_path
from grader.intake.platforms import iso_time, plain_submission, recognise, unmatched_file
from grader.intake.problem_names import ALL_PROBLEMS, Problems, is_bare, is_python
from grader.intake.tree import (
    ARCHIVE_SUFFIXES,
    IS_TWICE,
    Kind,
    Refused,
    TreeEntry,
    archive_suffix,
    is_minor,
    without_suffix,
)
from grader.text import counted, person_name, quoted

HANDED_IN_LATE = "The submission was late."


def find_submissions(path: Path, course: Course, only: Problem | None = None) -> list[Submission]:
    """Return the submissions that `read_submissions` finds, without its messages."""
    return read_submissions(path, course, only).submissions


def read_submissions(
    path: Path,
    course: Course,
    only: Problem | None = None,
    problems_by_name: Mapping[str, str] | None = None,
) -> Intake:
    """Read all submissions at a path. The path contains a single submission or a class.

    Archives are read like folders. Downloads of learning platforms are recognised. In other
    folders, a single outer folder around a class, or around the content of an archive, is skipped.

    A folder that contains the folder or the file of a problem is one submission. If the folder also
    contains two or more submissions, it is a class. Every folder in a class counts as a submission,
    so that no submission is lost. Files with code that are in the class but in no student's folder
    are reported.

    Optional problems without a file are left out of a submission. `only` is never left out.

    Args:
        path: the path that the instructor gave.
        course: the course with the problems to search for.
        only: the only problem to search for; None for all problems. If `only` is set, a
            `problem.py` whose path indicates no problem belongs to this problem.
        problems_by_name: maps the name of a file or folder in a submission to a problem's id.

    Raises:
        SubmissionError: the path is neither a folder nor an archive, or is empty.
    """
    known = {problem.id: problem for problem in course.problems()}
    problems = Problems(tuple(known), only.id if only else "", problems_by_name or {}, known)
    with _opened_path(path, problems) as layout:
        rows = [_read_submission(each, problems) for each in layout.submissions]
    if only is None:
        optional = [problem for problem in known.values() if problem.part.optional]
        rows = [without_skipped(row, optional) for row in rows]
    remarks = [*layout.notes, *layout.unmatched, *make_unique(rows), *_in_several(rows)]
    hint = _hint(rows, problems)
    return Intake(
        rows,
        recognised=[_summary(layout, rows)] if layout.title else [],
        unmatched=[*remarks, hint] if hint else remarks,
        without_problem=hint,
    )


def _summary(layout: Layout, submissions: Sequence[Submission]) -> str:
    """Return one line with the numbers of students and files in a platform's download."""
    students = sum(max(1, len(s.members)) for s in submissions)
    late = sum(s.late for s in submissions)
    unused = len(layout.unmatched) + sum(len(s.unused) for s in submissions)
    parts = [counted(students, "student")]
    if students != len(submissions):
        parts[0] += f" in {counted(len(submissions), 'submission')}"
    parts += [f"{late} late"] if late else []
    parts += [f"{counted(unused, 'file')} not used"] if unused else []
    return f"{layout.title}: {', '.join(parts)}."


def _in_several(submissions: Iterable[Submission]) -> list[str]:
    """Return a sentence about each person with more than one submission."""
    submissions_of: dict[str, list[str]] = {}
    for submission in submissions:
        for member in submission.members:
            submissions_of.setdefault(member, []).append(quoted(submission.shown_name))
    return [
        f"{quoted(member)} is a member of {' and '.join(names)}. The gradebook has a row for each "
        f"submission."
        for member, names in submissions_of.items()
        if len(names) > 1
    ]


def _hint(submissions: Iterable[Submission], problems: Problems) -> str:
    """Return a hint if there are files whose problem is unknown. Otherwise, return ""."""
    count = sum(each.has_unknown_file and not each.is_read for each in submissions)
    if problems.only or not count:
        return ""
    have = f"{counted(count, 'submission')} {'has' if count == 1 else 'have'}"
    return f"{have} a Python file of an unknown problem. {problems.hint}."


# The submissions at a path


@contextmanager
def _opened_path(path: Path, problems: Problems) -> Iterator[Layout]:
    """Yield the submissions at a path. An archive stays open until the context ends.

    Args:
        path: the path that the instructor gave.
        problems: the problems of the course.

    Raises:
        SubmissionError: the path is neither a folder nor an archive, or is empty.
    """
    try:
        path.stat()
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        fault = "does not exist" if is_missing else f"can't be read ({error.strerror})"
        raise _error(path, fault, problems) from None
    if not path.is_dir() and not archive_suffix(path.name):
        raise _error(path, "is not a folder or an archive", problems)
    with open_path(path.resolve(), bytes_to_read) as folder:
        if folder.kind is not Kind.FOLDER:
            yield Layout("", [plain_submission(folder)])
            return
        try:
            layout = _layout(path, folder, problems)
        except Refused as refused:
            raise _error(path, str(refused), problems) from None
        if not layout.submissions:
            is_bare_file = _has_work(folder, problems, bare=True)
            hint = f". It contains a {SUBMISSION_FILE}. {problems.hint}" if is_bare_file else ""
            raise _error(path, "contains no submissions", problems, hint)
        yield layout


def _error(path: Path, fault: str, problems: Problems, hint: str = "") -> SubmissionError:
    return SubmissionError(
        f"{path} {fault}; name a submission, which is a folder or an archive "
        f"({', '.join(ARCHIVE_SUFFIXES)}) that contains {problems.known[0]}/{SUBMISSION_FILE} and "
        f"so on, or a folder of submissions{hint}"
    )


def _layout(path: Path, folder: TreeEntry, problems: Problems) -> Layout:
    # A download is recognised even if it contains a problem.py and `only` is set.
    if not _has_work(folder, problems, bare=False) and (layout := recognise(folder, problems)):
        return layout
    _require_folders(path, folder, problems)
    around, entries = _submissions_in(folder, problems)
    if entries == [folder]:
        submission = plain_submission(folder, is_archive=folder.is_packed)
        return Layout("", [submission], notes=_maybe_a_class(folder, problems, submission.name))
    code = [
        f"{unmatched_file(file.name)} If it is from a student, move it to a folder with the "
        f"student's name."
        for file in around.children()
        if file.is_plain_file and not is_minor(file.name) and _is_code(file.name)
    ]
    return Layout("", [*map(plain_submission, entries)], unmatched=code)


def _is_code(name: str) -> bool:
    """Return whether a file name looks like code, such as `bob.py.txt` or `bob.ipynb`."""
    return bool({".py", ".ipynb"} & {*PurePath(name.lower()).suffixes})


def _require_folders(path: Path, folder: TreeEntry, problems: Problems) -> None:
    """Check that a folder does not directly contain the files of several students.

    Raises:
        SubmissionError: the folder contains only files, and several of them are Python files.
    """
    children = folder.children()
    code = _python_files(children)
    is_flat = len(code) > 1 and all(each.is_plain_file for each in children)
    if is_flat and not _has_work(folder, problems, bare=True):
        raise SubmissionError(
            f"{path} contains {len(code)} Python files and no folders. If they are from several "
            f"students, move the files of each student to a folder with the student's name. "
            f"Otherwise keep only the file to grade."
        )


def _maybe_a_class(folder: TreeEntry, problems: Problems, name: str) -> list[str]:
    """Return a hint if an archive contains only one folder, which could be one student's folder."""
    inside = [each for each in folder.children() if not is_minor(each.name)]
    if not folder.is_packed or len(inside) != 1 or inside[0].is_plain_file:
        return []
    student = inside[0].name
    if student in {ALL_PROBLEMS, *problems.known} or without_suffix(student) == name:
        return []
    return [
        f"{quoted(folder.name)} counts as the submission of one student, called {quoted(name)}. If "
        f"{quoted(student)}, or a folder in it, is named after the student, unpack the archive and "
        "grade the folder that is named after the student."
    ]


# A class or one submission


def _submissions_in(folder: TreeEntry, problems: Problems) -> tuple[TreeEntry, list[TreeEntry]]:
    """Return the folder of a class and the submissions in it.

    The class may be in a single subfolder. If `folder` itself is one submission, return `folder`
    and a list that contains only `folder`.
    """
    around, inside = folder, _possible(folder)
    if _has_work(folder, problems, bare=bool(problems.only)):
        return folder, inside if _is_class(inside, problems) else [folder]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER:
        with suppress(Refused):  # an unreadable folder may be a student's
            below = _possible(inside[0])
            if _is_class(below, problems):
                around, inside = inside[0], below
    valid = [entry for entry in inside if entry.fault == IS_TWICE or entry.kind in _SUBMITTED]
    return (folder, [folder]) if folder.is_packed and len(valid) < 2 else (around, inside)


_SUBMITTED = (Kind.FOLDER, Kind.FILE, Kind.LINK)


def _has_work(folder: TreeEntry, problems: Problems, *, bare: bool) -> bool:
    """Return whether a folder contains folders of problems, or files with the names of problems.

    If `bare` is True, also return True if the folder itself contains a `problem.py`, or if it
    contains exactly one Python file and no subfolders or archives.
    """
    children = folder.children()
    code = _python_files(children)
    if any(problems.of_file(each.name) or (bare and is_bare(each.name)) for each in code):
        return True
    if bare and len(code) == 1 and all(each.is_plain_file for each in children):
        return True
    if _has_problems(children, problems):
        return True
    with suppress(Refused):  # an unreadable folder may be a student's
        below = (each.children() for each in children if each.name == ALL_PROBLEMS)
        return any(_has_problems(inside, problems) for inside in below)
    return False


def _python_files(children: Sequence[TreeEntry]) -> list[TreeEntry]:
    """Return the Python files that belong neither to a tool nor to the course."""
    plain = (each for each in children if each.is_plain_file and is_python(each.name))
    return [each for each in plain if not is_minor(each.name)]


def _has_problems(children: Sequence[TreeEntry], problems: Problems) -> bool:
    return any(each.name in problems.known and each.kind is not Kind.FILE for each in children)


def _possible(folder: TreeEntry) -> list[TreeEntry]:
    """Return the entries of a folder that may be submissions: all except plain files."""
    return [each for each in folder.children() if not each.is_plain_file]


def _is_class(entries: Sequence[TreeEntry], problems: Problems) -> bool:
    """Return whether at least two entries are submissions.

    A folder and a link with the same name count as one entry.
    """
    return sum(e.fault == IS_TWICE or _is_submission(e, problems) for e in entries) > 1


def _is_submission(entry: TreeEntry, problems: Problems) -> bool:
    """Return whether an entry of a class looks like a submission."""
    if entry.kind is not Kind.FOLDER or entry.name in {ALL_PROBLEMS, *problems.known}:
        return entry.is_archive
    # If the name of a folder is similar to a problem's name, a problem.py does not make the folder
    # a submission.
    bare = bool(problems.only) and not problems.similar_to_folder(entry.name)
    with suppress(Refused):
        return _has_work(entry, problems, bare=bare)
    return False


# One submission


def read_source(path: Path) -> StudentFile:
    """Read a regular file of at most MAX_SOURCE_BYTES. Do not follow a link or wait for data."""
    return read_file(entry_at(path, Kind.FILE), path.parent.name)


def _read_submission(unread: UnreadSubmission, problems: Problems) -> Submission:
    """Read the submission of one student or group."""
    row = _row(unread)
    try:
        located = locate(
            open_entry(unread.folder, bytes_to_read), problems, _problem_of(unread, problems)
        )
    except Refused as refused:
        file = StudentFile(None, refused.sentence(quoted(unread.folder.name)), bad=True)
        row.files = dict.fromkeys(problems.requested, file)
    else:
        row.unused += tuple(located.unused)
        row.notes += located.notes
        row.has_unknown_file = located.has_unknown_file
        row.files = {id: _with_times(file, unread) for id, file in located.files.items()}
    return row


def _row(unread: UnreadSubmission) -> Submission:
    """Convert an unread submission to a `Submission` without files."""
    full_name = person_name(unread.name)
    identity = unicodedata.normalize("NFC", unread.identity)
    members = unread.members
    group = f"A group of {len(members)}: {', '.join(map(quoted, members))}."
    return Submission(
        result_name(identity, full_name),
        {},
        [
            *([group] if len(members) > 1 else []),
            *([HANDED_IN_LATE] if unread.late else []),
            *unread.notes,
        ],
        members,
        unread.late,
        unread.unused,
        identity,
        full_name,
        unread.folder.name,
    )


def _with_times(file: StudentFile, unread: UnreadSubmission) -> StudentFile:
    """Add the time and lateness of a submission to a file. Return a missing file unchanged."""
    if not file.is_submitted:
        return file
    return replace(file, late=unread.late, handed_in=iso_time(unread.time))


def _problem_of(unread: UnreadSubmission, problems: Problems) -> str:
    """Return the problem that the name of the uploaded folder or archive indicates, or "".

    The name of a folder, or of an archive that is named after the student, counts only if it is the
    id of a problem and only one problem is requested.
    """
    name = unread.folder.name
    stem = without_suffix(name)
    if stem in (name, unread.name):
        return stem if problems.only and stem in problems.known else ""
    return problems.of_folder(name) or (problems.similar_to_folder(name) if problems.only else "")


# Skip optional problems that were not submitted


def without_skipped(submission: Submission, optional: Iterable[Problem]) -> Submission:
    """Return a submission without optional problems that were not attempted.

    Such a problem has no file, or its file is the unchanged stub. If there are several
    files and none can be read, all for the same reason, no problem counts as attempted.

    If only one problem was requested, and the submission contains only other files, a note explains
    why the file of this problem is missing.

    Args:
        submission: the submission, whose files were read.
        optional: the optional problems of the course.
    """
    skipped = {problem.id for problem in optional if _is_skipped(submission, problem)}
    files = {id: file for id, file in submission.files.items() if id not in skipped}
    is_only = len(submission.files) == 1 and bool(submission.unused)
    left = [submission.files[id] for id in submission.files if id in skipped]
    reasons = [file.reason for file in left if file.source is None and is_only]
    return replace(submission, files=files, notes=[*submission.notes, *reasons])


def _is_skipped(submission: Submission, problem: Problem) -> bool:
    file = submission.files.get(problem.id)
    if file is None:
        return False
    return not file.is_submitted or problem.is_stub(file.source) or _is_unreadable(submission)


def _is_unreadable(submission: Submission) -> bool:
    """Return whether there are several files, and none can be read, all for the same reason."""
    files = [*submission.files.values()]
    alike = all(file.reason == files[0].reason for file in files)
    return len(files) > 1 and files[0].bad and alike
