"""Searches the main module of its process for paths. It finds nothing useful."""

import __main__


def double(x):
    raise LookupError(str(vars(__main__)))
