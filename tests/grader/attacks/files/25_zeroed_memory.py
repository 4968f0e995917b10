"""Zeroes the test's input without PyTorch. The test has a copy and reports it."""

import ctypes


def double(x):
    ctypes.memset(x.data_ptr(), 0, x.numel() * x.element_size())
    return x.clone()
