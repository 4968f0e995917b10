"""Sends itself the signal by which the system ends who used up its time. A crash, no timeout."""

import signal


def double(x):
    signal.raise_signal(signal.SIGXCPU)
