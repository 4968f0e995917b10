"""From the work of one student or group to a row: each problem's file, or why there is none."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from pathlib import Path

from grader.intake import disk
from grader.intake.collect import wanted
from grader.intake.handed_in import StudentFile, Submission
from grader.intake.layout import Work
from grader.intake.locate import locate, read_file
from grader.intake.problem_names import Problems
from grader.intake.result_names import result_name
from grader.intake.tree import Kind, Refused, archive_suffix
from grader.text import person_name, quoted

HANDED_IN_LATE = "It was handed in late."


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
