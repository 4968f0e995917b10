"""Calls the forbidden function as torch has it in Python, below its hooks. It is noticed."""

import torch
import torch._refs


def double(x):
    with torch._C.DisableTorchFunction():
        torch._refs.softmax(x, -1)
    return x + x
