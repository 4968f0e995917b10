"""Give submissions identities and names of result files, and find submissions by name.

The name of a file depends only on the identity and the real name, never on other submissions. Two
identities never share a file, also on a file system that ignores case.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from pathlib import Path

from grader.errors import UsageError
from grader.intake.handed_in import Submission
from grader.text import look, quoted

_UNSAFE = re.compile(r"[^\w.@+ -]", re.ASCII)
_PLATFORMS = re.compile(r"[a-z]+:")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # reserved by Windows
_LONGEST = 80
_MARK = "~"  # before a hash; no safe name contains it, so an unchanged name never equals one


def folder_identity(name: str) -> str:
    """Return the identity of a folder or an archive that no platform assigns to a student."""
    whole = unicodedata.normalize("NFC", name)
    return f"folder:{whole}" if _PLATFORMS.match(whole) else whole


def result_name(identity: str, full_name: str) -> str:
    """Return the name of a submission's result files.

    It is the identity if that is a safe name in small letters. Otherwise it is the safe part of
    the real name and a short hash of the identity.

    Args:
        identity: the identity; any text.
        full_name: the real name; any text.
    """
    readable = _readable(identity)
    if readable == identity.lower() == identity and not _DEVICES.fullmatch(identity):
        return identity
    return f"{_readable(full_name) or readable or 'submission'}{_MARK}{_sha256(identity)[:8]}"


def longer_result_name(identity: str, full_name: str) -> str:
    """Return a name with the whole hash, so that no other identity can have it on purpose."""
    return f"{_readable(full_name) or 'submission'}{_MARK}{_sha256(identity)}"


def _readable(name: str) -> str:
    """Return a name without accents and unsafe characters; empty if no letter or digit is left."""
    letters = unicodedata.normalize("NFKD", name)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    safe = _UNSAFE.sub("_", bare)[:_LONGEST].strip(" .")
    return safe if re.search("[A-Za-z0-9]", safe) else ""


def _sha256(identity: str) -> str:
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()


# Equal names: each submission of a run has its own identity, and similar names are reported


_SAID = 5
"""The most identities with one name that a sentence lists."""

Located = tuple[Submission, Path]
"""A submission and its path."""


class Collisions:
    """All submissions of a run, each with its path."""

    def __init__(self) -> None:
        self._found: list[Located] = []

    def add(self, submissions: Iterable[Submission], path: Path) -> None:
        """Add the submissions of a path."""
        self._found += [(submission, path) for submission in submissions]

    def resolve(self) -> list[str]:
        """Make identities and file names unique; return a sentence about each collision.

        The exact match keeps the identity; without one, the first submission does.
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
        """Give longer file names to submissions with equal short hashes."""
        told = []
        for group in _grouped(self._found, lambda found: found[0].name.lower()):
            for submission, _ in group[1:]:
                submission.name = longer_result_name(submission.identity, submission.full_name)
                told.append(f"The files of {quoted(submission.identity)} are {submission.name}.")
        return told


def _grouped(found: Sequence[Located], key: Callable[[Located], str]) -> list[list[Located]]:
    """Return the groups of two or more with the same key."""
    groups: dict[str, list[Located]] = {}
    for each in found:
        groups.setdefault(key(each), []).append(each)
    return [group for group in groups.values() if len(group) > 1]


def _exact_first(found: Located) -> bool:
    submission, _ = found
    return submission.handed_in_as != submission.identity


def _rename(first: Located, other: Located, taken: set[str]) -> str:
    """Give a submission another identity than the first; return a sentence about it."""
    submission, path = other
    identity = submission.identity
    where = _where(first, other)
    submission.identity = next(
        name for name in _candidates(identity, where, submission) if name not in taken
    )
    taken.add(submission.identity)
    submission.name = result_name(submission.identity, submission.full_name)
    both = f"{quoted(first[0].identity)} and {quoted(submission.identity)}"
    return f"{quoted(identity)} is there twice: graded as {both}."


def _where(first: Located, other: Located) -> str:
    """Return the part of the second submission's path that differs from the first's."""
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
    """Return a sentence about each group of names that look the same."""
    groups = _grouped(found, lambda each: look(each[0].full_name))
    return [_said([submission for submission, _ in group]) for group in groups]


def _said(alike: Sequence[Submission]) -> str:
    names = {submission.full_name for submission in alike}
    called = (
        f"are called {quoted(names.pop())}" if len(names) == 1 else "have names that look alike"
    )
    whose = [quoted(each.identity) for each in alike[:_SAID]]
    more = [f"{len(alike) - _SAID} more"] if len(alike) > _SAID else []
    return f"{len(alike)} {called}: {', '.join([*whose, *more])}."


# Submissions by name


_NEAR = 3


def only_these(submissions: Sequence[Submission], names: Iterable[str]) -> list[Submission]:
    """Return the submissions with these names, each an identity, a file's name or a real name.

    Raises:
        UsageError: a name matches no submission, or more than one.
    """
    wanted = {_one(submissions, name).identity for name in names}
    return [submission for submission in submissions if submission.identity in wanted]


def named(submissions: Iterable[Submission], name: str) -> list[Submission]:
    """Return the submission with this identity, or else all submissions with this name.

    A platform's number and an id of its gradebook are names, too.
    """
    name = unicodedata.normalize("NFC", name)
    submissions = list(submissions)
    exact = [submission for submission in submissions if submission.identity == name]
    called = [each for each in submissions if name in (each.name, each.full_name)]
    return exact or called or [each for each in submissions if name and name in _ids(each)]


def _ids(submission: Submission) -> set[str]:
    return {submission.identity.partition(":")[2], *submission.members}


def _one(submissions: Sequence[Submission], name: str) -> Submission:
    found = named(submissions, name)
    if len(found) == 1:
        return found[0]
    if found:
        whose = " or ".join(quoted(each.identity) for each in found)
        raise UsageError(f"{quoted(name)} fits more than one; say {whose}.")
    known = {n for each in submissions for n in (each.identity, each.full_name, each.name)}
    lower = {n.lower(): n for n in sorted(known)}
    inside = [n for n in sorted(known) if name and name.lower() in n.lower()]
    near = difflib.get_close_matches(name.lower(), lower, n=_NEAR, cutoff=0.6)
    meant = list(dict.fromkeys([*inside, *(lower[n] for n in near)]))[:_NEAR]
    question = f" Did you mean {' or '.join(map(quoted, meant))}?" if meant else ""
    raise UsageError(f"No one here is called {quoted(name)}.{question}")
