"""Returns a named tuple whose fields have objects for names. No process ends."""


class Pair(tuple):
    _fields = (object(), object())


def double(x):
    return Pair((x, x))
