"""What a file tried while it was loaded, in sentences for who grades it."""

from __future__ import annotations

from grader.isolation.protocol import FILE, MAX_ATTEMPTS, MAX_NAME, Packed, ProtocolError
from grader.isolation.protocol.checks import clean_text, items, name_in, texts
from grader.text import quoted

_TOLD = {
    "read": "read {name}",
    "write": "write to {name}",
    "start": "start the program {name}",
    "fork": "start another process",
    "signal": "send a signal to a process",
    "connect": "use the network",
}


def told_attempts(packed: Packed) -> list[str]:
    """Return a sentence for each attempt.

    Raises:
        ProtocolError: they can't be read.
    """
    tried = [texts(items(each, 2)) for each in items(packed)]
    if len(tried) > MAX_ATTEMPTS or any(len(name) > MAX_NAME for _, name in tried):
        raise ProtocolError("too much was tried")
    return [_told(kind, name) for kind, name in tried]


def _told(kind: str, name: str) -> str:
    what = _TOLD[name_in(kind, _TOLD)].format(name=quoted(clean_text(name)))
    return f"While it was loaded, {FILE} tried to {what}."
