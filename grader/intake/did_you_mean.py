"""Names that are nearly right. They are asked back in a sentence, and never taken for right."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from grader.course import SUBMISSION_FILE
from grader.intake.noise import is_minor
from grader.text import quoted

_NEAR = 0.8


def nearest_folder(name: str, ids: Iterable[str]) -> str:
    """Return the problem whose id a folder's name nearly is; empty if it is like none."""
    ids = [id for id in ids if _may_be_near(name, id)]
    near = difflib.get_close_matches(name.lower(), ids, n=1, cutoff=_NEAR) if ids else []
    return near[0] if near else ""


def _may_be_near(name: str, other: str) -> bool:
    """Tell whether two names may be so near by their lengths; the letters take long to compare."""
    return 2 * min(len(name), len(other)) >= _NEAR * (len(name) + len(other))


def nearest_problem(words: str, ids: Sequence[str]) -> str:
    """Return the problem that a file's name may have meant; empty if that isn't just one.

    Args:
        words: what the name says, with `-` between words.
        ids: the problems that it may have meant.
    """
    holds = [id for id in ids if id[3:] in words or id[:2] in words.split("-")]
    near = difflib.get_close_matches(words, [*ids, *(id[3:] for id in ids)], n=1, cutoff=0.7)
    found = holds or [id for id in ids if near and near[0] in (id, id[3:])]
    return found[0] if len(found) == 1 else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question, with a space before it, about the student a name may belong to."""
    known = list(known)
    lowered = name.lower()
    inside = sorted((k for k in known if len(k) > 2 and k.lower() in lowered), key=len)[-1:]
    near = inside or difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f" Did you mean {quoted(near[0])}?" if near else ""


def is_nearly_problem_file(name: str) -> bool:
    """Tell whether another name is nearly `problem.py`, or that of a copy of it."""
    if is_minor(name):
        return False
    stem, ending = SUBMISSION_FILE.split(".")
    is_copy = stem in name.lower() and name.lower().endswith(f".{ending}")
    if is_copy or not _may_be_near(name, SUBMISSION_FILE):
        return is_copy
    return difflib.SequenceMatcher(None, name, SUBMISSION_FILE).ratio() > _NEAR
