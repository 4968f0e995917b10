"""Reads single keys from the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Thread


@contextmanager
def keys_of_terminal(pressed: Callable[[str], None]) -> Iterator[None]:
    """Tell of each key that is pressed, from another thread; leave the terminal as it was."""
    if sys.platform == "win32":
        import msvcrt

        Thread(target=_read_keys, args=(msvcrt.getwch, pressed), daemon=True).start()
        yield
        return
    import termios
    import tty

    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    tty.setcbreak(file)  # keys come at once, without Enter and without being shown
    read = partial(_read_key, file)
    Thread(target=_read_keys, args=(read, pressed), daemon=True).start()
    try:
        yield
    finally:
        termios.tcsetattr(file, termios.TCSADRAIN, before)


def _read_key(file: int) -> str:
    return os.read(file, 1).decode(errors="replace")


def _read_keys(read: Callable[[], str], pressed: Callable[[str], None]) -> None:
    with suppress(OSError):
        while key := read():
            pressed(key)
    pressed("q")  # the terminal is gone
