"""Tries to kill its own process with SIGKILL. The sandbox forbids it."""

import os
import signal


def double(x):
    signal.raise_signal(signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
