"""Returns a list that holds itself. Bad output."""


def double(x):
    loop = []
    loop.append(loop)
    return loop
