"""Find submissions in folders and archives, and read each student's files once.

Nothing in a submission is run, imported, unpacked or followed here. Only regular files of limited
size are read; others are reported. An error in one submission is reported in its row and does not
affect other submissions.

`disk` and `archives` create a tree, `paths` and `platforms` find the submissions in it, `collect`
lists the files of each, and `locate` chooses the file of each problem.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from grader.course import Course, Problem
from grader.intake import disk, notices
from grader.intake.collect import wanted
from grader.intake.handed_in import Intake, StudentFile, Submission
from grader.intake.identity import Collisions, result_name
from grader.intake.layout import Work
from grader.intake.locate import locate, read_file
from grader.intake.paths import are_all_classes, opened_path
from grader.intake.problem_names import Problems
from grader.intake.tree import Kind, Refused, archive_suffix
from grader.text import person_name, quoted

HANDED_IN_LATE = "It was handed in late."


def find_submissions(
    paths: Iterable[Path], course: Course, only: Problem | None = None
) -> list[Submission]:
    """Read all submissions at `paths`, as `take_in` does."""
    return take_in(paths, course, only).submissions


def take_in(
    paths: Iterable[Path],
    course: Course,
    only: Problem | None = None,
    meant: Mapping[str, str] | None = None,
) -> Intake:
    """Read all submissions at `paths`, each one submission or a class of them.

    Folders and archives are treated alike. Downloads of learning platforms are recognised. In any
    other path, a single folder around a class or an archive's content is skipped. A folder with a
    problem's folder or file is one submission, unless it also contains two or more submissions:
    then it is a class. In a class, files with code are reported, and every folder has a row, even
    a problem's, so that no submission is lost.
    Each of several paths is one submission, unless all contain two or more. A file among them
    that is no archive is reported.

    An optional problem that was not submitted has no file, unless it is `only`.

    Args:
        paths: the paths that the instructor gave.
        course: the course with the problems to search for.
        only: the only problem to search for, if there is one. A `problem.py` of unknown problem
            then counts as this problem's.
        meant: the problems' ids by the names of files and folders in submissions.

    Raises:
        SubmissionError: a path is neither a folder nor an archive, or is empty.
    """
    known = {problem.id: problem for problem in course.problems()}
    optional = [problem for problem in known.values() if problem.part.optional]
    given = only.id if only else ""
    problems = Problems(tuple(known), given, meant=meant or {}, stubs=known)
    paths = list(paths)
    intake = Intake()
    collisions = Collisions()
    several = len(paths) > 1
    as_one = several and not are_all_classes(paths, problems)
    for path in paths:
        with opened_path(path, problems, several=several, as_one=as_one) as layout:
            rows = [read_submission(work, problems) for work in layout.works]
        if only is None:
            rows = [without_skipped(row, optional) for row in rows]
        if layout.title:
            line = notices.summary(layout, rows)
            intake.recognised.append(f"{path.name}: {line}" if several else line)
        intake.submissions += rows
        intake.is_whole |= len(rows) > 1
        collisions.add(rows, path)
        intake.unmatched += [*layout.notes, *layout.unmatched]
    intake.unmatched += collisions.resolve()
    intake.unmatched += notices.in_several(intake.submissions)
    intake.without_problem = notices.untold(intake.submissions, problems)
    is_told = any(notices.name_it(problems) in text for text in intake.unmatched)
    intake.unmatched += [intake.without_problem] if intake.without_problem and not is_told else []
    return intake


# One submission


def read_source(path: Path) -> StudentFile:
    """Read a regular file of at most MAX_SOURCE_BYTES without following a link or waiting."""
    return read_file(disk.entry_at(path, Kind.FILE), path.parent.name)


def read_submission(work: Work, problems: Problems) -> Submission:
    """Read the submission of one student or group.

    Args:
        work: the unread submission.
        problems: the problems to search for.
    """
    row = _row(work)
    try:
        found = locate(work.folder.opened(wanted), problems, _told(work, problems))
    except Refused as refused:
        unread = StudentFile(None, refused.sentence(quoted(work.folder.name)), bad=True)
        row.files = dict.fromkeys(problems.sought, unread)
    else:
        row.unused += tuple(found.unused)
        row.notes += found.notes
        row.is_untold = found.is_untold
        row.files = {id: _with_times(file, work) for id, file in found.files.items()}
    return row


def _row(work: Work) -> Submission:
    """Return the row of an unread submission."""
    full_name = person_name(work.name)
    identity = unicodedata.normalize("NFC", work.identity)
    return Submission(
        result_name(identity, full_name),
        {},
        _about(work),
        work.members,
        work.late,
        work.unused,
        identity,
        full_name,
        work.folder.name,
    )


def _with_times(file: StudentFile, work: Work) -> StudentFile:
    """Return a problem's file with its time of submission, if a file was submitted."""
    if not file.is_there:
        return file
    return replace(file, late=work.late, handed_in=work.handed_in)


def _about(work: Work) -> list[str]:
    """Return the notes about an unread submission."""
    notes = []
    if len(work.members) > 1:
        notes.append(f"A group of {len(work.members)}: {', '.join(map(quoted, work.members))}.")
    if work.late:
        notes.append(HANDED_IN_LATE)
    return [*notes, *work.notes]


def _told(work: Work, problems: Problems) -> str:
    """Return the problem that the name of the upload indicates; empty for none.

    A name that is only the student's, or a group's number, counts only if it is a problem's id.
    """
    name = work.folder.name
    stem = name.removesuffix(archive_suffix(name))
    if stem == name or stem == work.name:
        return stem if problems.given and stem in problems.known else ""
    return problems.of_folder(name) or (problems.nearly_folder(name) if problems.given else "")


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
    alone = len(submission.files) == 1 and bool(submission.unused)
    meant = [submission.files[id] for id in submission.files if id in skipped]
    told = [f.reason for f in meant if f.source is None and alone]
    return replace(submission, files=files, notes=[*submission.notes, *told])


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
