"""Returns a named tuple whose field names are objects. No process crashes."""


class Pair(tuple):
    _fields = (object(), object())


def double(x):
    return Pair((x, x))
