"""Reads an address that nothing is at. A crash."""

import faulthandler


def double(x):
    faulthandler._sigsegv()
