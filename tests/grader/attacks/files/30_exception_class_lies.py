"""Raises an exception of a class with a false name and false bases. The result is an error."""


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
