"""Suspends torch's hooks while it calls a forbidden function. The call is still recorded, and
raises an exception.
"""

import torch
from torch.utils._python_dispatch import _disable_current_modes


def double(x):
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        assert torch.softmax(x, -1) is not None
    return x + x
