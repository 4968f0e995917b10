"""What a student's file tried while it was loaded, in sentences for the instructor."""

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
    """Return a sentence for each attempt of a file while it was loaded.

    Raises:
        ProtocolError: there is no such kind of attempt.
    """
    return [_sentence(kind, name) for kind, name in attempts]


def _sentence(kind: str, name: str) -> str:
    if kind not in _ATTEMPTED:
        raise ProtocolError("a kind of attempt isn't known")
    what = _ATTEMPTED[kind].format(name=quoted(plain(name)))
    return f"While it was loaded, {SUBMISSION_FILE} tried to {what}."
