"""Raises an exception of a class with hostile methods. Only its own process is affected."""


class Meta(type):
    def __getattribute__(cls, name):
        raise RuntimeError("hands off")

    def __subclasscheck__(cls, other):
        raise RuntimeError("hands off")


class Hostile(Exception, metaclass=Meta):  # noqa: N818
    pass


def double(x):
    raise Hostile
