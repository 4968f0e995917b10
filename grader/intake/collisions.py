"""Names that meet: no two submissions of a run are one person, and whoever looks alike is said."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from pathlib import Path

from grader.intake.handed_in import Submission
from grader.intake.result_names import longer_result_name, result_name
from grader.text import look, quoted

_SAID = 5
"""How many of one name a sentence lists."""

Located = tuple[Submission, Path]
"""A submission, and the path that holds it."""


class Collisions:
    """All submissions of a run, each with the path that holds it."""

    def __init__(self) -> None:
        self._found: list[Located] = []

    def add(self, submissions: Iterable[Submission], path: Path) -> None:
        """Take in what stands at a path."""
        self._found += [(submission, path) for submission in submissions]

    def resolve(self) -> list[str]:
        """Give everybody an identity and a file of their own; return a sentence on each collision.

        Of several with one identity it stays with what is exactly called so, else with the first.
        """
        told = []
        alone = list(self._found)
        taken = {submission.identity for submission, _ in self._found}
        for group in _grouped(self._found, lambda found: found[0].identity):
            first, *others = sorted(group, key=_exact_first)
            for other in others:
                told.append(_rename(first, other, taken))
                alone.remove(other)
        return [*told, *self._give_files(), *_look_alike(alone)]

    def _give_files(self) -> list[str]:
        """See to it that nobody's file is another's, should two hashes be the same."""
        told = []
        for group in _grouped(self._found, lambda found: found[0].name.lower()):
            for submission, _ in group[1:]:
                submission.name = longer_result_name(submission.identity, submission.full_name)
                told.append(f"The files of {quoted(submission.identity)} are {submission.name}.")
        return told


def _grouped(found: Sequence[Located], key: Callable[[Located], str]) -> list[list[Located]]:
    """Return those that have a key in common, if it is more than one."""
    groups: dict[str, list[Located]] = {}
    for each in found:
        groups.setdefault(key(each), []).append(each)
    return [group for group in groups.values() if len(group) > 1]


def _exact_first(found: Located) -> bool:
    submission, _ = found
    return submission.handed_in_as != submission.identity


def _rename(first: Located, other: Located, taken: set[str]) -> str:
    """Give a submission another identity than the first has; return what to say of it."""
    submission, path = other
    identity = submission.identity
    where = _where(first, other)
    submission.identity = next(
        name for name in _candidates(identity, where, submission) if name not in taken
    )
    taken.add(submission.identity)
    submission.name = result_name(submission.identity, submission.full_name)
    return (
        f"{quoted(identity)} is there twice: graded as {first[0].name} and {submission.name} "
        f"({quoted(where)})."
    )


def _where(first: Located, other: Located) -> str:
    """Return what is different about where two submissions stand."""
    submission, path = other
    own = unicodedata.normalize("NFC", submission.handed_in_as)
    if path == first[1] or own != unicodedata.normalize("NFC", first[0].handed_in_as):
        return own
    here = path.name if path.name != first[1].name else str(path)
    return here if path.name == own else f"{here}/{own}"


def _candidates(identity: str, where: str, submission: Submission) -> Iterable[str]:
    raw = submission.handed_in_as.encode("utf-8", "surrogatepass")
    plain = f"{identity} ({where})"
    by_bytes = f"{identity} ({where}, {hashlib.sha256(raw).hexdigest()[:8]})"
    return chain([plain, by_bytes], (f"{by_bytes} {number}" for number in count(2)))


def _look_alike(found: Sequence[Located]) -> list[str]:
    """Return a sentence about each name that several have, as far as one can see."""
    groups = _grouped(found, lambda each: look(each[0].full_name))
    return [_said([submission for submission, _ in group]) for group in groups]


def _said(alike: Sequence[Submission]) -> str:
    names = {submission.full_name for submission in alike}
    called = (
        f"are called {quoted(names.pop())}" if len(names) == 1 else "have names that look alike"
    )
    whose = [f"{each.name} is {quoted(each.identity)}" for each in alike[:_SAID]]
    more = [f"{len(alike) - _SAID} more"] if len(alike) > _SAID else []
    return f"{len(alike)} {called}: {', '.join([*whose, *more])}."
