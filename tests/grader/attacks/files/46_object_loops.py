"""Returns an object that never ends when its fields are looked for."""


class Looping:
    @property
    def __dict__(self):
        while True:
            pass


def double(x):
    return Looping()
