"""Describe for the instructor which forbidden actions a file tried while it was loaded."""

from __future__ import annotations

from grader.course import SUBMISSION_FILE
from grader.sandbox.frames import ProtocolError
from grader.text import plain, quoted

_ATTEMPTED = {
    "read": "read {name}",
    "write": "write to {name}",
    "start": "start the program {name}",
    "fork": "start another process",
    "signal": "send a signal to a process",
    "connect": "use the network",
}


def sentences_on(attempts: list[tuple[str, str]]) -> list[str]:
    """Return a sentence for each forbidden action that a file tried while it was loaded.

    Args:
        attempts: the kind and the name of each action.

    Raises:
        ProtocolError: a kind of attempt is unknown.
    """
    return [_sentence(kind, name) for kind, name in attempts]


def _sentence(kind: str, name: str) -> str:
    if kind not in _ATTEMPTED:
        raise ProtocolError("a kind of attempt is unknown")
    what = _ATTEMPTED[kind].format(name=quoted(plain(name)))
    return f"While it was loaded, {SUBMISSION_FILE} tried to {what}."
