"""Puts a name into its module that is no identifier, and is right. Right is right."""

globals()["not an identifier"] = print


def double(x):
    return x + x
