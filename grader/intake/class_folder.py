"""Which of a folder's entries are submissions: a class of them, or the folder itself."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from grader.intake.problem_names import ALL_PROBLEMS, Problems, is_bare, is_python
from grader.intake.tree import IS_TWICE, Kind, Refused, TreeEntry, is_minor


def submissions_in(
    folder: TreeEntry, problems: Problems, *, bare: bool, several: bool
) -> tuple[TreeEntry, list[TreeEntry]]:
    """Return what to list of a folder: itself if it is one submission, else those in it.

    They come after the folder in which they stand, which may be the only one in it.

    Args:
        folder: which one.
        problems: those of the course.
        bare: whether a `problem.py` counts that stands in no problem's folder.
        several: whether more paths were given; then a folder is a class only if that is certain.

    Raises:
        Refused: the folder can't be read.
    """
    around, inside = folder, _listed(folder)
    is_class = _is_class(inside, problems, bare=bare)
    if has_work(folder, problems, bare=bare):
        return folder, inside if is_class else [folder]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER:
        with suppress(Refused):  # one student's folder may be what can't be read
            below = _listed(inside[0])
            around = inside[0] if _is_class(below, problems, bare=bare) else folder
        inside = _listed(around)
    # What is there more than once, as a folder and as a link, may be somebody's, but is nobody's.
    folders = [entry for entry in inside if entry.kind is not Kind.OTHER or _is_twice(entry)]
    is_one = folder.is_packed and len(folders) < 2
    is_uncertain = several and around is folder and not is_class
    return (folder, [folder]) if is_one or is_uncertain else (around, inside)


def has_work(folder: TreeEntry, problems: Problems, *, bare: bool) -> bool:
    """Return whether a folder holds problems' folders, or files whose names tell their problems.

    Args:
        folder: which one.
        problems: those of the course.
        bare: whether a `problem.py` counts that stands in no problem's folder, and any other
            Python file if it is the only thing there.

    Raises:
        Refused: its `problems` can't be read, and there is nothing else.
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
        return False  # of a class it is one student's, who is called so


def python_files(children: Sequence[TreeEntry]) -> list[TreeEntry]:
    """Return the Python files among entries, but for those of tools and of the course."""
    plain = (each for each in children if each.is_plain_file and is_python(each.name))
    return [each for each in plain if not is_minor(each.name)]


def _has_problems(children: Sequence[TreeEntry], problems: Problems) -> bool:
    return any(each.name in problems.known and each.kind is not Kind.FILE for each in children)


def _listed(folder: TreeEntry) -> list[TreeEntry]:
    """Return what a class lists: all but plain files, so that nobody vanishes unnoticed."""
    return [each for each in folder.children() if not each.is_plain_file]


def _is_submission(entry: TreeEntry, problems: Problems, *, bare: bool) -> bool:
    """Return whether an entry of a class is a submission by the look of it."""
    if entry.kind is not Kind.FOLDER or entry.name in {ALL_PROBLEMS, *problems.known}:
        return entry.is_archive
    # A folder nearly called like a problem isn't a student's because a problem.py stands in it.
    counts = bare and not problems.nearly_folder(entry.name)
    with suppress(Refused):
        return has_work(entry, problems, bare=counts)
    return False


def _is_class(inside: Sequence[TreeEntry], problems: Problems, *, bare: bool) -> bool:
    """Return whether two submissions or more are among entries."""
    works = [entry for entry in inside if _is_submission(entry, problems, bare=bare)]
    return len(works) + sum(map(_is_twice, inside)) > 1


def _is_twice(entry: TreeEntry) -> bool:
    return entry.fault == IS_TWICE
