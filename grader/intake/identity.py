"""Choose the identity of a submission and the name of its result files. Find submissions by name.

The name of a result file depends only on the identity and the full name, never on other
submissions. Two identities never share a file, even on a file system that does not distinguish
upper-case and lower-case letters.
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
from grader.text import quoted

_UNSAFE = re.compile(r"[^\w.@+ -]", re.ASCII)
_PLATFORMS = re.compile(r"[a-z]+:")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # reserved by Windows
_LONGEST = 80
_SHOWN = 3
_MARK = "~"  # precedes a hash; names without a hash never contain it


def folder_identity(name: str) -> str:
    """Return the identity of a submission that is not from a platform.

    Args:
        name: the name of its folder or archive.
    """
    whole = unicodedata.normalize("NFC", name)
    return f"folder:{whole}" if _PLATFORMS.match(whole) else whole


def is_folder_name(identity: str) -> bool:
    """Return whether an identity is the name of a folder and not an id on a platform."""
    return identity.startswith("folder:") or not _PLATFORMS.match(identity)


def result_name(identity: str, full_name: str) -> str:
    """Return the name of a submission's result files.

    If the identity is a safe file name in lower case, return the identity. Otherwise return the
    safe characters of the full name, followed by a short hash of the identity.

    Args:
        identity: the identity, which may be any text.
        full_name: the full name, which may be any text.
    """
    readable = _readable(identity)
    if readable == identity.lower() == identity and not _DEVICES.fullmatch(identity):
        return identity
    return f"{_readable(full_name) or readable or 'submission'}{_MARK}{_sha256(identity)[:16]}"


def longer_result_name(identity: str, full_name: str) -> str:
    """Return a name for result files that contains the full hash of the identity."""
    return f"{_readable(full_name) or 'submission'}{_MARK}{_sha256(identity)}"


def _readable(name: str) -> str:
    """Return a name without accents and unsafe characters.

    Return "" if no letter or digit is left.
    """
    letters = unicodedata.normalize("NFKD", name)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    safe = _UNSAFE.sub("_", bare)[:_LONGEST].strip(" .")
    return safe if re.search("[A-Za-z0-9]", safe) else ""


def _sha256(identity: str) -> str:
    return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()


# Unique identities


def make_unique(submissions: Sequence[Submission]) -> list[str]:
    """Make identities unique, and return a sentence about each changed identity.

    If several submissions have the same identity, one of them keeps it. This is the submission
    whose folder has the identity as its name, or else the first submission.
    """
    sentences = []
    taken = {submission.identity for submission in submissions}
    kept = set[str]()
    for each in sorted(submissions, key=lambda each: each.handed_in_as != each.identity):
        identity = each.identity
        if identity not in kept:
            kept.add(identity)
            continue
        folder_name = unicodedata.normalize("NFC", each.handed_in_as)
        numbered = (f"{identity} ({folder_name}, {number})" for number in count(2))
        names = chain([f"{identity} ({folder_name})"], numbered)
        each.identity = next(name for name in names if name not in taken)
        taken.add(each.identity)
        each.name = result_name(each.identity, each.full_name)
        both = f"{quoted(identity)} and {quoted(each.identity)}"
        sentences.append(f"{quoted(identity)} was submitted twice, and is graded as {both}.")
    return sentences


# Submissions by name


def only_these(submissions: Sequence[Submission], names: Iterable[str]) -> list[Submission]:
    """Return the submissions with these names.

    A name may be of any kind that `named` accepts.

    Raises:
        UsageError: a name does not match exactly one submission.
    """
    wanted = {_one(submissions, name).identity for name in names}
    return [submission for submission in submissions if submission.identity in wanted]


def named(submissions: Iterable[Submission], name: str) -> list[Submission]:
    """Return the submissions that match `name`.

    Compare `name` with the identities. If none matches, compare it with the full names and the
    names of result files. If none matches, compare it with the ids of the students on the platform
    and in its gradebook.
    """
    name = unicodedata.normalize("NFC", name)
    submissions = list(submissions)
    exact = [submission for submission in submissions if submission.identity == name]
    called = [each for each in submissions if name in (each.name, each.full_name)]
    return exact or called or [each for each in submissions if name and name in _ids(each)]


def _ids(submission: Submission) -> set[str]:
    return {submission.identity.partition(":")[2], *submission.members}


def _one(submissions: Sequence[Submission], name: str) -> Submission:
    matches = named(submissions, name)
    if len(matches) == 1:
        return matches[0]
    if matches:
        identities = " or ".join(quoted(each.identity) for each in matches)
        raise UsageError(f"{quoted(name)} matches more than one student; use one of {identities}.")
    known = {name for each in submissions for name in (each.identity, each.full_name)}
    raise UsageError(f"There is no submission called {quoted(name)}.{did_you_mean(name, known)}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?" with the most similar names, or "" if no name is similar."""
    by_lower = {each.lower(): each for each in sorted(known, reverse=True)}
    lower = name.lower()
    inside = sorted((each for each in by_lower if len(each) > 2 and each in lower), key=len)[-1:]
    around = sorted(each for each in by_lower if lower and lower in each)[:_SHOWN]
    near = inside or around or difflib.get_close_matches(lower, by_lower, n=1, cutoff=0.6)
    return f" Did you mean {' or '.join(quoted(by_lower[each]) for each in near)}?" if near else ""
