"""Mounts: that reading a file leaves no trace which another process finds.

Most file systems note when a file was last read, if they did not on the same day. A worker may read
Python's own files and ask when they were read: a bit of each, for the next worker, in the next run.
"""

from __future__ import annotations

import ctypes
import struct

from grader.boundary.sandbox.libc import ask, leave_mounts

_MOUNT_SETATTR, _HERE, _RECURSIVE = 442, -100, 0x8000
_NOATIME, _ALL_ATIME = 0x10, 0x70


def keep_access_times() -> bool:
    """Let this process, and those it forks, see all mounts as ones that note no reading.

    No others do. It takes the rights of root, and a system that lets root use them; where that
    isn't so, nothing changes.

    Returns:
        Whether it is so now.
    """
    attributes = struct.pack("=QQQQ", _NOATIME, _ALL_ATIME, 0, 0)
    arguments = attributes, ctypes.c_size_t(len(attributes))
    everywhere = ctypes.c_int(_HERE), b"/", ctypes.c_uint(_RECURSIVE)
    return leave_mounts() and ask(_MOUNT_SETATTR, *everywhere, *arguments) == 0
