"""Returns an object of a class that raises when its name is read. The result is an error."""


class Meta(type):
    @property
    def __name__(cls):
        raise SystemExit(3)


class Thing(metaclass=Meta):
    pass


def double(x):
    return Thing()
