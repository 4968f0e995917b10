"""Leaves in the call as a program would. An error like any other."""


def double(x):
    raise SystemExit(0)
