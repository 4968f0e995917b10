"""What comes in: finds submissions in folders and archives and reads each student's files once.

Nothing in a submission is run, imported, unpacked or followed here. A file is read only when it is
a regular file of reasonable size; everything else about it is told in a sentence. Whatever is wrong
with one submission is said in its own row and never keeps the others from being read.

The way of a submission's bytes to its row: `paths` and `platforms` find who handed in what, of a
tree that `disk` and `archives` make; `collect` lists the files of each, and `locate` chooses.
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
    """Read all submissions at `paths`; `take_in` says how."""
    return take_in(paths, course, only).submissions


def take_in(
    paths: Iterable[Path],
    course: Course,
    only: Problem | None = None,
    meant: Mapping[str, str] | None = None,
) -> Intake:
    """Read all submissions at `paths`, each one submission or a class of them.

    Folders and archives are alike. What a learning platform packs is recognised as such. Any other
    class holds submissions; a single folder around a class, or around what an archive holds, is
    looked through. What holds a problem's folder or file is one submission, unless two or more
    submissions stand beside it: then it is a class. There a file with code is told, and every
    folder has a row, even a problem's, so that nobody vanishes.
    Of several paths each is one submission, unless all of them hold two or more; a file among them
    that is no archive is told.

    An optional problem that was left out is not among a submission's files, unless it is `only`.

    Args:
        paths: what the instructor gave.
        course: whose problems to look for.
        only: the one problem that was handed in, if there is one. Then nothing else is looked for,
            and a `problem.py` whose path tells no problem is taken as if it stood in that folder.
        meant: for what files and folders in submissions are called, the ids of their problems.

    Raises:
        SubmissionError: a path is neither a folder nor an archive, or there is nothing in it.
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
    """Read what one student or group handed in.

    Args:
        work: what that is.
        problems: which to look for.
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
    """Return the row of a work that was not looked into yet."""
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
    """Return a problem's file with what the platform says of when it came, if anything came."""
    if not file.is_there:
        return file
    return replace(file, late=work.late, handed_in=work.handed_in)


def _about(work: Work) -> list[str]:
    """Return what to say of a submission before it is looked into."""
    notes = []
    if len(work.members) > 1:
        notes.append(f"A group of {len(work.members)}: {', '.join(map(quoted, work.members))}.")
    if work.late:
        notes.append(HANDED_IN_LATE)
    return [*notes, *work.notes]


def _told(work: Work, problems: Problems) -> str:
    """Return the problem that the name of what was uploaded tells; empty if it tells none.

    The student's own name says nothing, such as a group's number, unless it is a problem's id.
    """
    name = work.folder.name
    stem = name.removesuffix(archive_suffix(name))
    if stem == name or stem == work.name:
        return stem if problems.given and stem in problems.known else ""
    return problems.of_folder(name) or (problems.nearly_folder(name) if problems.given else "")


# Optional problems are for whoever likes to: who left one out is not graded in it


def without_skipped(submission: Submission, optional: Iterable[Problem]) -> Submission:
    """Return a submission without the optional problems that were left out, or are the stub.

    Where something else was handed in for one problem alone, that it was not found is among the
    notes.

    Args:
        submission: as it was read.
        optional: the problems of the course that are optional.
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
    """Tell whether several problems can't be read for one reason, so that nobody knows of any."""
    files = [*submission.files.values()]
    alike = all(file.reason == files[0].reason for file in files)
    return len(files) > 1 and files[0].bad and alike
