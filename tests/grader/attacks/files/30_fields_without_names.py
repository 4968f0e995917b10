"""Returns a named tuple with objects as field names. No process ends."""


class Pair(tuple):
    _fields = (object(), object())


def double(x):
    return Pair((x, x))
