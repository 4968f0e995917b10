"""Kills its parent, its process group, and a process that it was told of. All are out of reach."""

import os
import signal

VICTIM = int("@VICTIM@")


def double(x):
    for action in (
        lambda: os.kill(VICTIM, signal.SIGKILL),
        lambda: os.kill(os.getppid(), signal.SIGKILL),
        lambda: os.killpg(os.getpgid(os.getppid()), signal.SIGKILL),
        lambda: os.kill(-1, 0),  # only asks whether it could: it would reach everybody
    ):
        try:
            action()
        except OSError as error:
            refusal = error
        else:
            return x + x
    raise refusal
