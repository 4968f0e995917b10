"""Ends its own process by the signal that can't be caught. It may not: only the machine does."""

import os
import signal


def double(x):
    signal.raise_signal(signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)
