"""Give submissions identities and names of result files, and find submissions by name.

The name of a file depends only on the identity and the real name, never on other submissions. Two
identities never share a file, also on a file system that ignores case.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import chain, count

from grader.errors import UsageError
from grader.intake.handed_in import Submission
from grader.text import look, quoted, some

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
    return f"{_readable(full_name) or readable or 'submission'}{_MARK}{_sha256(identity)[:16]}"


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


_SHOWN = 5


def make_unique(submissions: Sequence[Submission]) -> list[str]:
    """Give submissions with one identity different ones; return a sentence about each.

    The submission with exactly this name keeps it; without one, the first submission does. The
    names of other submissions that look alike are reported, too.
    """
    sentences = []
    taken = {submission.identity: submission for submission in submissions}
    kept: dict[str, Submission] = {}
    for each in sorted(submissions, key=lambda each: each.handed_in_as != each.identity):
        identity = each.identity
        if kept.setdefault(identity, each) is each:
            continue
        own = unicodedata.normalize("NFC", each.handed_in_as)
        numbered = (f"{identity} ({own}, {number})" for number in count(2))
        names = chain([f"{identity} ({own})"], numbered)
        each.identity = next(name for name in names if name not in taken)
        taken[each.identity] = each
        each.name = result_name(each.identity, each.full_name)
        both = f"{quoted(identity)} and {quoted(each.identity)}"
        sentences.append(f"{quoted(identity)} is there twice: graded as {both}.")
    alike: dict[str, list[Submission]] = {}
    for each in submissions:
        if each in kept.values():
            alike.setdefault(look(each.full_name), []).append(each)
    return [*sentences, *(_about(each) for each in alike.values() if len(each) > 1)]


def _about(alike: Sequence[Submission]) -> str:
    """Return a sentence about submissions with names that look alike."""
    names = {submission.full_name for submission in alike}
    called = (
        f"are called {quoted(alike[0].full_name)}"
        if len(names) == 1
        else ("have names that look alike")
    )
    return f"{len(alike)} {called}: {some([quoted(each.identity) for each in alike], _SHOWN)}."


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
