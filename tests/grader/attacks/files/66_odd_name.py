"""Adds a name that is not an identifier to its module, and returns right answers. The result is
full marks.
"""

globals()["not an identifier"] = print


def double(x):
    return x + x
