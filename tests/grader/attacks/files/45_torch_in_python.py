"""Calls torch's Python code of the forbidden function, below the hooks. The call is recorded."""

import torch
import torch._refs


def double(x):
    with torch._C.DisableTorchFunction():
        torch._refs.softmax(x, -1)
    return x + x
