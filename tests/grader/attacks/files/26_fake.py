"""Returns a tensor that has a shape but no memory, although its device is the CPU."""

from torch._subclasses.fake_tensor import FakeTensorMode


def double(x):
    return FakeTensorMode().from_tensor(x + x)
