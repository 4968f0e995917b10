"""Make the C library reuse the memory of freed tensors."""

from __future__ import annotations

import ctypes
import sys

# From the C library's malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# More than the tests' largest tensors take together; and a value for versions that refuse it.
_KEPT_BYTES, _KEPT_AT_LEAST = 1 << 29, 1 << 25


def keep_memory() -> None:
    """Let the C library keep the memory of freed tensors for new ones. Linux only.

    It would return large blocks to the system and request them again, page by page, which takes up
    to a sixth of the tests' time.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "mallopt"):  # not every C library has it
            for threshold in (_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD):
                any(library.mallopt(threshold, size) for size in (_KEPT_BYTES, _KEPT_AT_LEAST))
