"""Raises an exception whose class has a false name and hides its base classes."""


class Meta(type):
    @property
    def __name__(cls):
        return [object()]

    @property
    def __mro__(cls):
        return 5


class Lying(Exception, metaclass=Meta):  # noqa: N818
    pass


def double(x):
    raise Lying
