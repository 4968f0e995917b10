"""From one student's work to a row: each problem's file is read once, or has a reason."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath

from grader.course import NOTEBOOK, SUBMISSION_FILE
from grader.intake import disk
from grader.intake.archives.kinds import archive_suffix
from grader.intake.did_you_mean import is_nearly_problem_file
from grader.intake.handed_in import StudentFile, Submission
from grader.intake.layout import Work
from grader.intake.limits import MAX_SOURCE_BYTES
from grader.intake.names_file import Renaming
from grader.intake.problem_names import Problems
from grader.intake.result_names import result_name
from grader.intake.sentences import (
    A_NOTEBOOK,
    NAMES_SHOWN,
    for_another,
    is_notebook,
    listed,
    misspelt,
)
from grader.intake.survey import Survey, survey
from grader.intake.tree import Kind, Refused, TreeEntry
from grader.intake.wanted import wanted
from grader.intake.work_place import Loose, Place, Unclear, find_work, not_read
from grader.text import person_name, quoted, some

HANDED_IN_LATE = "It was handed in late."


def read_source(path: Path) -> StudentFile:
    """Read a regular file of at most MAX_SOURCE_BYTES without following a link or waiting."""
    return _read_file(disk.entry_at(path, Kind.FILE), path.parent.name)


def read_submission(work: Work, problems: Problems) -> Submission:
    """Read what one student or group handed in.

    Args:
        work: what that is.
        problems: which to look for.
    """
    row = _row(work)
    inside = _inside(work, problems)
    renaming = Renaming(problems.meant)
    try:
        place = find_work(renaming.shown(work.folder).opened(wanted(inside)), inside)
    except Refused as refused:
        if isinstance(refused, Unclear):
            row.unused += tuple(file.own_name for file in refused.files)
        unread = StudentFile(None, refused.sentence(quoted(work.folder.name)), bad=True)
        row.files = dict.fromkeys(inside.sought, unread)
    else:
        row.unused += tuple(place.unused)
        row.notes += [*place.notes, *misspelt(place.work, inside)]
        _read_problems(row, place, inside)
    row.notes += renaming.notes()
    row.files = {id: _with_times(file, work) for id, file in row.files.items()}
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


def _inside(work: Work, problems: Problems) -> Problems:
    """Return what holds inside: the name of what was handed in may be another problem's.

    The student's own name says nothing, such as a group's number, unless it is a problem's id.
    """
    suffix = archive_suffix(work.folder.name)
    name = work.folder.name.removesuffix(suffix)
    is_students = not suffix or name == work.name
    return problems if is_students and name not in problems.others else problems.inside(name)


def _read_problems(row: Submission, place: Place, problems: Problems) -> None:
    inside = {seen.entry.name: seen.entry for seen in place.work.seen}
    for id in problems.sought:
        folder = inside.get(id)
        if folder is None or folder.kind is Kind.FILE:
            row.files[id] = StudentFile(None, _no_folder(id, place.work, problems))
        else:
            row.files[id] = _read_problem(folder, id, row.notes, problems)
    _read_loose(row, place.loose, problems)


def _read_loose(row: Submission, loose: Sequence[Loose], problems: Problems) -> None:
    """Read a file beside problems' folders in the place of a stub, and tell of the others.

    That is one whose name tells the problem, if no other one is written that could be meant.
    """
    used: list[Loose] = []
    files = row.files.items()
    stubs = [id for id, f in files if problems.is_stub(id, f.source) and not f.nearly]
    for id in stubs[:]:
        found = [(each, _read_file(each.file, id)) for each in loose if each.problem == id]
        written = [(each, file) for each, file in found if not problems.is_stub(id, file.source)]
        if len(written) == 1:
            each, file = written[0]
            row.files[id] = file
            row.notes.append(
                f"{quoted(each.path)} was read as {id}: nothing is written in the "
                f"{SUBMISSION_FILE} of that folder."
            )
            used.append(each)
            stubs.remove(id)
    left = [each for each in loose if each not in used]
    _tell_of_loose(row, {each: _could_be_for(each, stubs, problems) for each in left})


def _could_be_for(file: Loose, stubs: Sequence[str], problems: Problems) -> list[str]:
    """Return of which stubs a file could be meant to stand in the place.

    One that tells no problem is hardly for an optional one: that stub says that it was left out.
    """
    if file.problem:
        return [id for id in stubs if id == file.problem]
    return [id for id in stubs if id == problems.given or not problems.stubs[id].part.optional]


def _tell_of_loose(row: Submission, could_be_for: Mapping[Loose, Sequence[str]]) -> None:
    """Tell of files that were not read, each with the stubs in whose place it could be meant."""
    near = [each.path for each, ids in could_be_for.items() if ids]
    others = [each.path for each, ids in could_be_for.items() if each.problem and not ids]
    where = sorted({id for ids in could_be_for.values() for id in ids})
    if near:
        advice = _nearly(near, where[0] if len(where) == 1 else "")
        row.notes.append(f"{_nothing_written(some(where, NAMES_SHOWN))}{advice}")
    row.notes += not_read(others)
    told = [each for each in could_be_for if each.path in {*near, *others}]
    row.unused += tuple(each.file.own_name for each in told)


def _no_folder(id: str, beside: Survey, problems: Problems) -> str:
    """Return why a problem has no file: its folder isn't there, but maybe another's."""
    if not problems.takes_bare:
        return f"There is no folder {id} in the submission."
    names = [folder.name for folder in beside.folders]
    others = ((name, problems.inside(name).around) for name in names)
    other = next((for_another(name, problem) for name, problem in others if problem), "")
    return f"There is no {SUBMISSION_FILE} and no folder {id} in the submission.{other}"


def _read_problem(folder: TreeEntry, id: str, notes: list[str], problems: Problems) -> StudentFile:
    """Read what was handed in for one problem; add to the notes what else is to say of it."""
    try:
        here = survey(folder, problems.known)
    except Refused as refused:
        return StudentFile(None, refused.sentence(id), bad=True)
    return _problem_file(here, id, notes, problems)


def _problem_file(here: Survey, id: str, notes: list[str], problems: Problems) -> StudentFile:
    """Return one problem's file; add to the notes what else could have been meant."""
    inside = {seen.entry.name: seen.entry for seen in here.seen}
    copies = _copies(inside.values())
    if SUBMISSION_FILE not in inside:
        near = _nearly(copies, id) if copies else ""
        reason = f"There is no {SUBMISSION_FILE} in {id}.{near}"
        return StudentFile(None, reason, nearly=bool(copies))
    file = _read_file(inside[SUBMISSION_FILE], id)
    copies = [name for name in copies if name != NOTEBOOK]
    if problems.is_stub(id, file.source):
        given = (SUBMISSION_FILE, NOTEBOOK)
        code = (file.own_name for file in here.scripts if file.name not in given)
        copies = [*dict.fromkeys([*copies, *code])]
        notes += [f"{_nothing_written(id)}{_nearly(copies, id)}"] if copies else []
        return replace(file, nearly=bool(copies))
    if copies:
        notes.append(f"{id}: {SUBMISSION_FILE} was read, but not {listed(copies)}.")
    return file


def _nothing_written(where: str) -> str:
    return f"Nothing is written in the {SUBMISSION_FILE} of {where}."


def _nearly(copies: list[str], id: str = "") -> str:
    """Return what to do about files that could have been meant; without an id for several."""
    if all(map(is_notebook, copies)):
        return f" There is {listed(copies)}. {A_NOTEBOOK}"
    which = "it" if len(copies) == 1 else "one of them" if id else "each"
    is_called_so = all(PurePath(name).name == SUBMISSION_FILE for name in copies)
    called = "" if is_called_so else f"be called {SUBMISSION_FILE} and "
    folder = id or "its problem's folder"
    return f" There is {listed(copies)}: {which} has to {called}stand in {folder} itself."


def _copies(inside: Iterable[TreeEntry]) -> list[str]:
    """Return the files that could have been meant. Which one was, only the student knows."""
    copies = []
    for child in inside:
        if child.kind is Kind.FOLDER:
            with suppress(Refused):
                names = {below.name for below in child.children()}
                copies += [f"{child.name}/{SUBMISSION_FILE}"] if SUBMISSION_FILE in names else []
        elif child.kind is Kind.FILE and child.name != SUBMISSION_FILE:
            copies += [child.name] if _could_be_meant(child.name) else []
    return copies


def _could_be_meant(name: str) -> bool:
    return is_nearly_problem_file(name) or is_notebook(name)


def _read_file(file: TreeEntry, folder_name: str) -> StudentFile:
    try:
        return StudentFile(file.read(MAX_SOURCE_BYTES))
    except Refused as refused:
        reason = refused.sentence(f"{file.name} in {folder_name}")
        return StudentFile(None, reason, bad=True)
