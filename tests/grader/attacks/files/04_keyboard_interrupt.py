"""Pretends that the instructor pressed Ctrl-C. The run must go on."""


def double(x):
    raise KeyboardInterrupt
