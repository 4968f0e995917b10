"""Raises exceptions in a group, which no other built-in type describes. An error like any other."""


def double(x):
    raise BaseExceptionGroup("several", [SystemExit(0), KeyboardInterrupt()])
