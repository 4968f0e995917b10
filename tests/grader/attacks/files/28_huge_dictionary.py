"""Returns a dictionary of a million entries. Bad output."""


def double(x):
    return dict.fromkeys(range(10**6))
