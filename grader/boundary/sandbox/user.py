"""A change to a user that owns nothing, where the grader is root."""

from __future__ import annotations

import os
from collections.abc import Iterable

from grader.boundary.sandbox.libc import drop_capabilities

_FIRST_UID, _UIDS = 60500, 4000


def pick_uid(process: int) -> int:
    """Return a user id that nobody has, another one for each of the processes alive."""
    return _FIRST_UID + process % _UIDS


def become(uid: int) -> None:
    """Become a user without any rights, for good."""
    drop_capabilities()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def may_become(uid: int, paths: Iterable[str]) -> bool:
    """Return whether this process can become `uid` and would still be able to read `paths`.

    An interpreter below a private home directory isn't readable for anybody else.
    """
    if os.geteuid() != 0:
        return False
    try:
        os.setgroups([])
        os.setegid(uid)
        os.seteuid(uid)
        return all(os.access(p, os.R_OK, effective_ids=True) for p in paths)
    except OSError:
        return False
    finally:
        os.seteuid(0)
        os.setegid(0)
