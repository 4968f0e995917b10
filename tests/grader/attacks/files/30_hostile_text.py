"""Raises an exception whose text raises. The error is told without it."""


class Hostile(Exception):  # noqa: N818
    def __str__(self):
        raise RuntimeError("no text for you")

    __repr__ = __str__


def double(x):
    raise Hostile
