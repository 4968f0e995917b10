"""Find submissions in folders and archives, and read each student's files once.

Nothing in a submission is run, imported, unpacked or followed here. Only regular files of limited
size are read; others are reported. An error in one submission is reported in its row and does not
affect other submissions.

`disk` and `archives` create a tree, `layout` and `platforms` find the submissions in it, and
`locate` chooses the file of each problem.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from grader.course import Course, Problem
from grader.intake.archives import opened
from grader.intake.disk import entry_at
from grader.intake.handed_in import Intake, Layout, StudentFile, Submission, UnreadSubmission
from grader.intake.identity import make_unique, result_name
from grader.intake.layout import opened_path
from grader.intake.locate import locate, read_file, wanted
from grader.intake.problem_names import Problems
from grader.intake.student_lists import iso_time
from grader.intake.tree import Kind, Refused, archive_suffix
from grader.text import counted, person_name, quoted

HANDED_IN_LATE = "It was handed in late."


def find_submissions(path: Path, course: Course, only: Problem | None = None) -> list[Submission]:
    """Read all submissions at a path, as `take_in` does."""
    return take_in(path, course, only).submissions


def take_in(
    path: Path,
    course: Course,
    only: Problem | None = None,
    problems_by_name: Mapping[str, str] | None = None,
) -> Intake:
    """Read all submissions at a path, which is one submission or a class of them.

    Folders and archives are treated alike. Downloads of learning platforms are recognised. In any
    other path, a single folder around a class or an archive's content is skipped. A folder with a
    problem's folder or file is one submission, unless it also contains two or more submissions:
    then it is a class. In a class, files with code are reported, and every folder has a row, even
    a problem's, so that no submission is lost.

    An optional problem that was not submitted has no file, unless it is `only`.

    Args:
        path: the path that the instructor gave.
        course: the course with the problems to search for.
        only: the only problem to search for, if there is one. A `problem.py` of unknown problem
            then counts as this problem's.
        problems_by_name: the problems' ids by the names of files and folders in submissions.

    Raises:
        SubmissionError: the path is neither a folder nor an archive, or is empty.
    """
    known = {problem.id: problem for problem in course.problems()}
    problems = Problems(tuple(known), only.id if only else "", problems_by_name or {}, known)
    with opened_path(path, problems) as layout:
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
    """Return one line about a platform's download."""
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
        f"{quoted(member)} is a member of {' and '.join(names)}; the gradebook has a row for each."
        for member, names in submissions_of.items()
        if len(names) > 1
    ]


def _hint(submissions: Iterable[Submission], problems: Problems) -> str:
    """Return a hint if there are files that could be used if their problem were given."""
    count = sum(each.has_unknown_file and not each.is_read for each in submissions)
    if problems.only or not count:
        return ""
    have = f"{counted(count, 'submission')} {'has' if count == 1 else 'have'}"
    return f"{have} a Python file of an unknown problem. {problems.hint}."


# One submission


def read_source(path: Path) -> StudentFile:
    """Read a regular file of at most MAX_SOURCE_BYTES without following a link or waiting."""
    return read_file(entry_at(path, Kind.FILE), path.parent.name)


def _read_submission(unread: UnreadSubmission, problems: Problems) -> Submission:
    """Read the submission of one student or group."""
    row = _row(unread)
    try:
        located = locate(opened(unread.folder, wanted), problems, _problem_of(unread, problems))
    except Refused as refused:
        file = StudentFile(None, refused.sentence(quoted(unread.folder.name)), bad=True)
        row.files = dict.fromkeys(problems.sought, file)
    else:
        row.unused += tuple(located.unused)
        row.notes += located.notes
        row.has_unknown_file = located.has_unknown_file
        row.files = {id: _with_times(file, unread) for id, file in located.files.items()}
    return row


def _row(unread: UnreadSubmission) -> Submission:
    """Return a submission without its files."""
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
    """Return a problem's file with its time of submission, if a file was submitted."""
    if not file.is_there:
        return file
    return replace(file, late=unread.late, handed_in=iso_time(unread.time))


def _problem_of(unread: UnreadSubmission, problems: Problems) -> str:
    """Return the problem that the name of the upload indicates; empty for none.

    A name that is only the student's, or a group's number, counts only if it is a problem's id.
    """
    name = unread.folder.name
    stem = name.removesuffix(archive_suffix(name))
    if stem in (name, unread.name):
        return stem if problems.only and stem in problems.known else ""
    return problems.of_folder(name) or (problems.nearly_folder(name) if problems.only else "")


# Skip optional problems that were not submitted


def without_skipped(submission: Submission, optional: Iterable[Problem]) -> Submission:
    """Return a submission without optional problems that are missing or the unchanged stub.

    If only one problem was searched for and the submission has other files, the notes report that
    its file is missing.

    Args:
        submission: the submission after reading.
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
    return not file.is_there or problem.is_stub(file.source) or _is_unreadable(submission)


def _is_unreadable(submission: Submission) -> bool:
    """Return whether all of several problems are unreadable for the same reason."""
    files = [*submission.files.values()]
    alike = all(file.reason == files[0].reason for file in files)
    return len(files) > 1 and files[0].bad and alike
