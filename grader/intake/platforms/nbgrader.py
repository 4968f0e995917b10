"""nbgrader: `submitted/<student>/<assignment>/`, each assignment with a `timestamp.txt`."""

from __future__ import annotations

from contextlib import suppress

from grader.intake.layout import Layout, Work, handed_in
from grader.intake.platforms.download import Download, Platform, children_or_itself, folders_in
from grader.intake.platforms.times import iso_time
from grader.intake.problem_names import Problems
from grader.intake.tree import Kind, Refused, TreeEntry

_SUBMITTED = "submitted"
_COURSE = {_SUBMITTED, "source", "release", "autograded", "feedback", "header", "formgrader"}
_STAMP = "timestamp.txt"
_STAMP_BYTES = 200


def _look(download: Download, problems: Problems) -> Layout | None:
    name, children = download.name, download.children
    folders = [child for child in children if child.kind is Kind.FOLDER]
    for child in folders:
        # Beside others' folders it would be that of somebody who is called so.
        if child.name == _SUBMITTED and {folder.name for folder in folders} <= _COURSE:
            name, children = child.name, children_or_itself(child)
    students = [child for child in children if child.kind is Kind.FOLDER]
    if not students or not (name == _SUBMITTED or _are_stamped(students, children)):
        return None
    works = [_work(student, problems) for student in students]
    others = [child for child in children if child.kind is not Kind.FOLDER]
    return Layout("nbgrader course", works).with_others(others)


def _work(student: TreeEntry, problems: Problems) -> Work:
    name = student.name
    stamps = {folder.name: _stamp(folder) for folder in folders_in(student)}
    return Work(
        f"nbgrader:{name}",
        name,
        _assignment(student, problems),
        members=(name,),
        handed_in=next(iter(stamps.values())) if len(stamps) == 1 else "",
        handed_in_for={id: stamps[id] for id in problems.known if id in stamps},
    )


def _stamp(assignment: TreeEntry) -> str:
    """Return when an assignment was handed in; empty if it doesn't say so."""
    stamps = [child for child in children_or_itself(assignment) if child.name == _STAMP]
    with suppress(Refused, ValueError):
        return iso_time(stamps[0].read(_STAMP_BYTES).decode()) if stamps else ""
    return ""


def _are_stamped(students: list[TreeEntry], children: list[TreeEntry]) -> bool:
    """Tell whether more than half of what there is holds an assignment with a time stamp."""
    return sum(map(_is_stamped, students)) * 2 > len(children)


def _is_stamped(student: TreeEntry) -> bool:
    return any(
        child.name == _STAMP
        for assignment in folders_in(student)
        for child in children_or_itself(assignment)
    )


def _assignment(student: TreeEntry, problems: Problems) -> TreeEntry:
    """Return the only assignment of a student; all of them if they are problems or several."""
    assignments = folders_in(student)
    if len(assignments) != 1 or assignments[0].name in problems.known:
        return student
    files = [c for c in children_or_itself(assignments[0]) if c.name != _STAMP]
    return handed_in(student.name, files)


def _may_hold(name: str, student: TreeEntry) -> bool:
    return name == _SUBMITTED or _is_stamped(student)


PLATFORM = Platform(
    _look, read=lambda name: _STAMP_BYTES if name == _STAMP else 0, may_hold=_may_hold
)
