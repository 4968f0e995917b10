"""Returns an object whose class raises when it is asked for its name."""


class Meta(type):
    @property
    def __name__(cls):
        raise SystemExit(3)


class Thing(metaclass=Meta):
    pass


def double(x):
    return Thing()
