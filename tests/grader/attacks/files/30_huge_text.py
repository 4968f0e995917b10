"""Raises an exception with a text of 50 million characters. The text is cut."""


def double(x):
    raise ValueError("x" * 50_000_000)
