"""Returns a tensor of 2^40 entries that takes four bytes. Too large: bad output."""


def double(x):
    return x.new_zeros(1).expand(1 << 40)
