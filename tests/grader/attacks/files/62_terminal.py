"""Tries to type into the instructor's terminal. Its process has no terminal."""

import fcntl
import os
import termios


def double(x):
    for number in (0, 1, 2):
        try:
            fcntl.ioctl(number, termios.TIOCSTI, b"x")
            return x + x
        except OSError:
            continue
    os.open("/dev/tty", os.O_RDWR)
    return x + x
