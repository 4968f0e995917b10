"""Returns a list that contains itself. The result is bad output."""


def double(x):
    loop = []
    loop.append(loop)
    return loop
