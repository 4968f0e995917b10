"""Returns an object whose attribute access never ends."""


class Looping:
    @property
    def __dict__(self):
        while True:
            pass


def double(x):
    return Looping()
