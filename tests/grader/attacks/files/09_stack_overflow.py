"""Calls itself endlessly without Python's limit. Only its own process is affected."""

import sys

sys.setrecursionlimit(10**9)


class Mirror:
    def __getattr__(self, name):
        return getattr(self, name)


def double(x):
    return Mirror().x
