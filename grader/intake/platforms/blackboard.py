"""Blackboard: `<assignment>_<user>_attempt_<date>_problem.py`, all files in one folder.

Beside an attempt's files stands its receipt, `<assignment>_<user>_attempt_<date>.txt`, whose first
line ends in `Ada Lovelace (ada)`. Only the newest attempt of a user counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

from grader.intake.layout import Layout, Work, handed_in
from grader.intake.platforms.download import Download, Platform, Upload, file_in
from grader.intake.problem_names import Problems
from grader.intake.tree import Kind, Refused, TreeEntry

_NAME = re.compile(
    r"(?P<front>.+?)_attempt_(?P<date>\d{4}(?:-\d\d){5})(?:_(?P<file>.+)|\.txt)", re.DOTALL
)
_RECEIPT = re.compile(r"[^:]*:\s*(?P<name>.*?)\s*\((?P<user>[^()]+)\)\s*")
_RECEIPT_BYTES = 1_000_000


def _look(download: Download, problems: Problems) -> Layout | None:
    if not (found := download.fitting(_match)):
        return None
    return download.layout("Blackboard download", found, lambda match: match["front"], _work)


def _match(child: TreeEntry) -> re.Match[str] | None:
    return None if child.kind is Kind.FOLDER else _NAME.fullmatch(child.name)


def _is_receipt(name: str) -> int:
    match = _NAME.fullmatch(name)
    return _RECEIPT_BYTES if match and not match["file"] else 0


def _work(uploads: Sequence[Upload]) -> Work:
    front = uploads[0][1]["front"]
    newest = max(match["date"] for _, match in uploads)
    entries, older = [], []
    user, name = front.rpartition("_")[2], ""
    for child, match in uploads:
        if not match["file"]:
            user, name = _receipt(child, front) or (user, name)
        elif match["date"] == newest:
            entries.append(child.renamed(match["file"]))
        else:
            older.append(match["file"])
    attempts = len({match["date"] for _, match in uploads})
    return Work(
        f"blackboard:{user}",
        name or user,
        handed_in(user, entries),
        members=(user,),
        notes=(f"The newest of {attempts} attempts was read.",) if attempts > 1 else (),
        unused=tuple(older),
        parts=tuple(child.name for child, _ in uploads),
    )


def _receipt(receipt: TreeEntry, front: str) -> tuple[str, str] | None:
    """Return the user and the name on a receipt, if it is what Blackboard writes."""
    with suppress(Refused, ValueError):
        first = receipt.read(_RECEIPT_BYTES).decode("utf-8-sig").split("\n")[0]
        match = _RECEIPT.fullmatch(first)
        if match and front.endswith(f"_{match['user']}"):
            return match["user"], match["name"]
    return None


PLATFORM = Platform(
    _look,
    uploaded_as=lambda name: file_in(_NAME.fullmatch(name)),
    read=_is_receipt,
    may_hold=lambda name, part: _match(part) is not None,
)
