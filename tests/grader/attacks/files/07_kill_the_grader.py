"""Tries to kill its parent, the parent's process group, and a given process. It reaches none of
them.
"""

import os
import signal

VICTIM = int("@VICTIM@")


def double(x):
    for action in (
        lambda: os.kill(VICTIM, signal.SIGKILL),
        lambda: os.kill(os.getppid(), signal.SIGKILL),
        lambda: os.killpg(os.getpgid(os.getppid()), signal.SIGKILL),
        lambda: os.kill(-1, 0),  # tests for permission without killing all processes
    ):
        try:
            action()
        except OSError as error:
            refusal = error
        else:
            return x + x
    raise refusal
