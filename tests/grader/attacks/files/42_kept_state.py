"""Tries to keep its arguments for the next test or student. There is no place to keep them."""

import os

PLACES = ("/tmp", "/var/tmp", "/dev/shm", ".", "@FOLDER@", os.path.expanduser("~/.cache"))


def double(x):
    for folder in PLACES:
        try:
            with open(os.path.join(folder, "kept_by_a_submission"), "a") as file:
                file.write(str(x))
        except OSError as error:
            refusal = error
        else:
            return x + x
    raise refusal
