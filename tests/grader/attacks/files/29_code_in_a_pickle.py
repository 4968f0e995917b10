"""Returns an object that runs code when it is unpickled. Nothing is ever unpickled."""

import os


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("@FOLDER@/unpickled",)


def double(x):
    return Bomb()
