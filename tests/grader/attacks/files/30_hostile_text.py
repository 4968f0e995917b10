"""Raises an exception that raises in `__str__`. The error is reported without its text."""


class Hostile(Exception):  # noqa: N818
    def __str__(self):
        raise RuntimeError("no text for you")

    __repr__ = __str__


def double(x):
    raise Hostile
