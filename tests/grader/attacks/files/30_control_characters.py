"""Raises an exception with terminal control characters. They are replaced."""


def double(x):
    raise ValueError("\x1b]0;title\x07\x1b[2J\u202egnp.exe\ud800 \r passed")
