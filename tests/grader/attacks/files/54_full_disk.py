"""Tries to fill the disk with one huge file. It can't create a file."""

import os
import tempfile


def double(x):
    for folder in ("@FOLDER@", "/tmp", "/dev/shm", "/var/tmp"):
        try:
            with open(os.path.join(folder, "huge"), "wb") as file:
                file.truncate(1 << 20)
        except OSError:
            continue
        return x + x
    tempfile.TemporaryFile().close()
    return x + x
