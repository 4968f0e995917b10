"""Tries to read the solution at its path, and to find it by a search. The sandbox forbids it."""

import glob


def double(x):
    refusal = FileNotFoundError("nothing found")
    found = glob.glob("@FOLDER@/**/solution.py", recursive=True)
    for path in ["@FOLDER@/solution.py", "@FOLDER@/outputs/../solution.py", *found]:
        try:
            with open(path) as file:
                scope = {}
                exec(file.read(), scope)
                return scope["double"](x)
        except OSError as error:
            refusal = error
    raise refusal
