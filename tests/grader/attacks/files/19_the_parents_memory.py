"""Tries to read the memory of its parent and of a given process. The sandbox forbids it."""

import ctypes
import os

VICTIM = int("@VICTIM@")
PTRACE_ATTACH = 16


def double(x):
    libc = ctypes.CDLL(None, use_errno=True)
    for process in (VICTIM, os.getppid()):
        if libc.ptrace(PTRACE_ATTACH, process, 0, 0) == 0:
            return x + x
        try:
            open(f"/proc/{process}/mem", "rb").close()
            return x + x
        except OSError as error:
            refusal = error
    raise refusal
