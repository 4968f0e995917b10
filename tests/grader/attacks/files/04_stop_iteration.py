"""Raises what ends an iteration, and pytest's hooks are generators. An error."""


def double(x):
    raise StopIteration
