"""What a student's file tries while it is loaded and a sandbox stops, also where it hides that.

It is found by Python's audit hooks, so it is this process's own word: something for an instructor
to know, and nothing that a mark hangs on.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType
from typing import Any

from grader.boundary.protocol.wire import MAX_ATTEMPTS, MAX_NAME

_KINDS = {
    "os.remove": "write",
    "os.rename": "write",
    "os.mkdir": "write",
    "os.link": "write",
    "os.symlink": "write",
    "os.chmod": "write",
    "os.truncate": "write",
    "os.listdir": "read",
    "os.scandir": "read",
    "os.system": "start",
    "os.exec": "start",
    "os.posix_spawn": "start",
    "subprocess.Popen": "start",
    "os.fork": "fork",
    "os.forkpty": "fork",
    "os.kill": "signal",
    "os.killpg": "signal",
    "socket.__new__": "connect",
}
_NAMED = {"read", "write", "start"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MOST_FOUND = 1000

_PYTHONS = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})
_INSTALLED = "-packages" + os.sep  # such folders may lie in Python's own


class Attempts:
    """What the student's code attempts, from now until `found`."""

    def __init__(self) -> None:
        self._found: list[tuple[str, str]] | None = []
        sys.addaudithook(self._note)

    def found(self) -> list[tuple[str, str]]:
        """Return what was attempted, each as kind and name, and listen no more."""
        found, self._found = self._found or [], None
        tried = dict.fromkeys(each for each in found if each[0] != "read" or _is_refused(each[1]))
        return [(kind, name[:MAX_NAME]) for kind, name in tried][:MAX_ATTEMPTS]

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        if self._found is None or (event != "open" and event not in _KINDS):
            return
        try:
            if len(self._found) < _MOST_FOUND and _is_students(sys._getframe(1)):
                self._found.append(_described(event, args))
        except Exception:  # never in the way of what is right
            pass


def _described(event: str, args: tuple[Any, ...]) -> tuple[str, str]:
    kind = _KINDS.get(event) or ("write" if args[2] & _WRITING else "read")
    name = args[0] if kind in _NAMED else ""
    name = os.fsdecode(name) if isinstance(name, str | bytes | os.PathLike) else ""
    return kind, name.encode("utf-8", "replace").decode()


def _is_students(frame: FrameType | None) -> bool:
    """Return whether the student's code does this itself, if through Python's own library."""
    while frame is not None and _is_pythons(frame.f_code.co_filename):
        frame = frame.f_back
    name = "<frozen" if frame is None else frame.f_code.co_filename
    return not os.path.isabs(name) and not name.startswith("<frozen")  # what imports modules


def _is_pythons(file: str) -> bool:
    return file.startswith(_PYTHONS) and _INSTALLED not in file


def _is_refused(name: str) -> bool:
    try:
        os.close(os.open(name, os.O_RDONLY | os.O_NONBLOCK))
    except PermissionError:
        return True
    except (OSError, ValueError):
        pass  # there is none
    return False
