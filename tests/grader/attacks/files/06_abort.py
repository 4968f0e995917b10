"""Ends its own process by abort(). A crash."""

import os


def double(x):
    os.abort()
