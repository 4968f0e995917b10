"""Returns a list nested a hundred thousand deep. The result is bad output."""


def double(x):
    nested = []
    for _ in range(10**5):
        nested = [nested]
    return nested
