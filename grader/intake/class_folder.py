"""Decide whether a folder is one submission or a class of submissions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from grader.intake.problem_names import ALL_PROBLEMS, Problems, is_bare, is_python
from grader.intake.tree import IS_TWICE, Kind, Refused, TreeEntry, is_minor


def submissions_in(
    folder: TreeEntry, problems: Problems, *, bare: bool, several: bool
) -> tuple[TreeEntry, list[TreeEntry]]:
    """Return the submissions of a folder, after the folder that contains them.

    A folder that is one submission is its own only entry. A class may be in a single subfolder.

    Args:
        folder: the folder to list.
        problems: the problems of the course.
        bare: whether a `problem.py` outside of a problem's folder counts.
        several: whether more paths were given; then a folder is a class only if that is certain.

    Raises:
        Refused: the folder cannot be read.
    """
    around, inside = folder, _listed(folder)
    is_class = _is_class(inside, problems, bare=bare)
    if has_work(folder, problems, bare=bare):
        return folder, inside if is_class else [folder]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER:
        with suppress(Refused):  # the unreadable folder may be one student's
            below = _listed(inside[0])
            around = inside[0] if _is_class(below, problems, bare=bare) else folder
        inside = _listed(around)
    # An entry that is there twice, as a folder and as a link, may be a submission: keep its row.
    folders = [entry for entry in inside if entry.kind is not Kind.OTHER or _is_twice(entry)]
    is_one = folder.is_packed and len(folders) < 2
    is_uncertain = several and around is folder and not is_class
    return (folder, [folder]) if is_one or is_uncertain else (around, inside)


def has_work(folder: TreeEntry, problems: Problems, *, bare: bool) -> bool:
    """Return whether a folder has problems' folders, or files named after problems.

    Args:
        folder: the folder to search.
        problems: the problems of the course.
        bare: whether a `problem.py` outside of a problem's folder counts, and any other Python
            file that is the only entry.

    Raises:
        Refused: its folder `problems` cannot be read, and there is nothing else.
    """
    children = folder.children()
    code = python_files(children)
    if any(problems.of_file(each.name) or (bare and is_bare(each.name)) for each in code):
        return True
    if bare and len(code) == 1 and not _listed(folder):
        return True
    if _has_problems(children, problems):
        return True
    if folder.name == ALL_PROBLEMS:
        return False
    try:
        below = (each.children() for each in children if each.name == ALL_PROBLEMS)
        return any(_has_problems(inside, problems) for inside in below)
    except Refused:
        if len(_listed(folder)) < 2:
            raise
        return False  # in a class it is the folder of a student with this name


def python_files(children: Sequence[TreeEntry]) -> list[TreeEntry]:
    """Return the Python files among entries, without those of tools and of the course."""
    plain = (each for each in children if each.is_plain_file and is_python(each.name))
    return [each for each in plain if not is_minor(each.name)]


def _has_problems(children: Sequence[TreeEntry], problems: Problems) -> bool:
    return any(each.name in problems.known and each.kind is not Kind.FILE for each in children)


def _listed(folder: TreeEntry) -> list[TreeEntry]:
    """Return all entries but plain files, so that each possible submission has a row."""
    return [each for each in folder.children() if not each.is_plain_file]


def _is_submission(entry: TreeEntry, problems: Problems, *, bare: bool) -> bool:
    """Return whether an entry of a class looks like a submission."""
    if entry.kind is not Kind.FOLDER or entry.name in {ALL_PROBLEMS, *problems.known}:
        return entry.is_archive
    # A problem.py does not make a folder a submission if its name is nearly that of a problem.
    counts = bare and not problems.nearly_folder(entry.name)
    with suppress(Refused):
        return has_work(entry, problems, bare=counts)
    return False


def _is_class(inside: Sequence[TreeEntry], problems: Problems, *, bare: bool) -> bool:
    """Return whether at least two entries are submissions."""
    works = [entry for entry in inside if _is_submission(entry, problems, bare=bare)]
    return len(works) + sum(map(_is_twice, inside)) > 1


def _is_twice(entry: TreeEntry) -> bool:
    return entry.fault == IS_TWICE
