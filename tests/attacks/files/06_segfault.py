"""Reads address 0. A crash."""

import ctypes


def double(x):
    ctypes.string_at(0)
