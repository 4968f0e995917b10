"""Returns an object that raises an exception on every access. It isn't a tensor."""


class Raising:
    @property
    def __dict__(self):
        raise SystemExit("no fields")

    def __getattr__(self, name):
        raise KeyboardInterrupt(name)

    def __eq__(self, other):
        raise GeneratorExit


def double(x):
    return Raising()
