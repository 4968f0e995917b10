"""Has the C library keep memory that tensors had, for those that come."""

from __future__ import annotations

import ctypes
import sys

# Of the C library's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# More than the tests' largest tensors take together; and what a version takes that refuses it.
_KEPT_BYTES, _KEPT_AT_LEAST = 1 << 29, 1 << 25


def keep_memory() -> None:
    """Let the C library keep the memory of tensors that are gone for those that come.

    It would give large pieces back to the system and get them anew, page by page, which takes up to
    a sixth of the time that tests take. Other systems than Linux have other ways.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):  # not every C library has it
            for threshold in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
                any(library.mallopt(threshold, size) for size in (_KEPT_BYTES, _KEPT_AT_LEAST))
