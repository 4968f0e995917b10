"""Zeroes the test's input behind PyTorch's back. It has a copy, and is told off."""

import ctypes


def double(x):
    ctypes.memset(x.data_ptr(), 0, x.numel() * x.element_size())
    return x.clone()
