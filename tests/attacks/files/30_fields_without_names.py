"""Returns a named tuple whose fields have objects for names. It can't be told, and no process ends."""


class Pair(tuple):
    _fields = (object(), object())


def double(x):
    return Pair((x, x))
