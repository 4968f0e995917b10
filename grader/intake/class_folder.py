"""Which of a folder's entries are submissions: a class of them, or the folder itself."""

from __future__ import annotations

from contextlib import suppress

from grader.intake.did_you_mean import nearest_folder
from grader.intake.survey import ALL_PROBLEMS, Survey, survey
from grader.intake.tree import IS_TWICE, Kind, Refused, TreeEntry

_ANY = "any"


def submissions_in(here: Survey, *, bare: bool, several: bool) -> tuple[Survey, list[TreeEntry]]:
    """Return what to list of a folder: itself if it is one submission, else those in it.

    They come after the folder in which they stand, which may be the only one in it.

    Args:
        here: the folder.
        bare: whether a `problem.py` counts that stands in no problem's folder.
        several: whether more paths were given; then a folder is a class only if that is certain.
    """
    around, inside = here, _listed(here)
    is_class = _is_class(here, bare=bare)
    if has_work(here, bare=bare):
        return here, inside if is_class else [here.folder]
    if len(inside) == 1 and inside[0].kind is Kind.FOLDER:
        with suppress(Refused):  # one student's folder may be what can't be read
            below = survey(inside[0], here.known)
            around = below if _is_class(below, bare=bare) else here
        inside = _listed(around)
    # What is there more than once, as a folder and as a link, may be somebody's, but is nobody's.
    folders = [entry for entry in inside if entry.kind is not Kind.OTHER or _is_twice(entry)]
    is_one = here.folder.is_packed and len(folders) < 2
    is_uncertain = several and around is here and not is_class
    return (here, [here.folder]) if is_one or is_uncertain else (around, inside)


def has_work(here: Survey, *, bare: bool) -> bool:
    """Tell whether a folder holds problems' folders, or files whose names tell their problems.

    Args:
        here: the folder.
        bare: whether a `problem.py` counts that stands in no problem's folder.

    Raises:
        Refused: its `problems` can't be read, and there is nothing else.
    """
    single = here.single_files(_ANY if bare else "")
    try:
        return bool(here.with_problems(here.known) or single)
    except Refused:
        if len(_listed(here)) < 2:
            raise
        return bool(single)  # of a class it is one student's, who is called so


def _listed(here: Survey) -> list[TreeEntry]:
    """Return what a class lists: all but plain files, so that nobody vanishes unnoticed."""
    return [seen.entry for seen in here.seen if not seen.entry.is_plain_file]


def _is_submission(entry: TreeEntry, known: tuple[str, ...], *, bare: bool) -> bool:
    """Tell whether an entry of a class is a submission by the look of it."""
    if entry.kind is not Kind.FOLDER or entry.name in {ALL_PROBLEMS, *known}:
        return entry.is_archive
    # A folder nearly called like a problem isn't a student's because a problem.py stands in it.
    counts = bare and not nearest_folder(entry.name, known)
    with suppress(Refused):
        return has_work(survey(entry, known), bare=counts)
    return False


def _is_class(here: Survey, *, bare: bool) -> bool:
    """Tell whether two submissions or more stand in a folder, whatever stands beside them."""
    inside = _listed(here)
    works = [entry for entry in inside if _is_submission(entry, here.known, bare=bare)]
    return len(works) + sum(map(_is_twice, inside)) > 1


def _is_twice(entry: TreeEntry) -> bool:
    return entry.fault == IS_TWICE
