"""Tries to write code to HOME, Python's packages and the course. It can't write."""

import os
import site
import sys

PLACES = ["@FOLDER@", os.path.expanduser("~"), *site.getsitepackages(), *sys.path, "/tmp"]


def double(x):
    for place in PLACES:
        try:
            with open(os.path.join(place, "planted_by_a_submission.pth"), "w") as file:
                file.write("# harmless\n")
        except OSError as error:
            refusal = error
        else:
            return x + x
    raise refusal
