"""Returns the right numbers in another dtype. The dtype is wrong."""


def double(x):
    return (x + x).half()
