"""Calls the Python code behind a forbidden function of torch, below the hooks. The call is still
recorded.
"""

import torch
import torch._refs


def double(x):
    with torch._C.DisableTorchFunction():
        torch._refs.softmax(x, -1)
    return x + x
