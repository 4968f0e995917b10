"""Sets the test's input to zero without PyTorch. The test compares the input with a copy and
reports the change.
"""

import ctypes


def double(x):
    ctypes.memset(x.data_ptr(), 0, x.numel() * x.element_size())
    return x.clone()
