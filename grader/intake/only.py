"""`--only NAME`: of all that was handed in, the submissions that were asked for."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence

from grader.errors import UsageError
from grader.intake.handed_in import Submission
from grader.text import quoted

_NEAR = 3


def only_these(submissions: Sequence[Submission], names: Iterable[str]) -> list[Submission]:
    """Return the submissions of these names, each an identity, a file's name or a real name.

    Raises:
        UsageError: a name is nobody's here, or that of several.
    """
    wanted = {_one(submissions, name).identity for name in names}
    return [submission for submission in submissions if submission.identity in wanted]


def named(submissions: Iterable[Submission], name: str) -> list[Submission]:
    """Return who is meant by a name: whoever it is the identity of, else all who are called so.

    A platform's number, or what its gradebook knows people by, is a name too.
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
    raise UsageError(f"Nobody here is called {quoted(name)}.{question}")
