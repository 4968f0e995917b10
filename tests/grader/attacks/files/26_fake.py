"""Returns a tensor that has a shape and no memory, though it says that it is on the CPU."""

from torch._subclasses.fake_tensor import FakeTensorMode


def double(x):
    return FakeTensorMode().from_tensor(x + x)
