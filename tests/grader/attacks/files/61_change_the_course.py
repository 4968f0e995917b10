"""Tries to change, rename, remove and link files of the course. The sandbox forbids it."""

import os


def double(x):
    solution = "@FOLDER@/solution.py"
    for action in (
        lambda: os.truncate(solution, 0),
        lambda: os.rename(solution, solution + ".old"),
        lambda: os.unlink(solution),
        lambda: os.symlink("/", "@FOLDER@/link"),
        lambda: os.link(solution, "@FOLDER@/link"),
        lambda: os.chmod(solution, 0o777),
        lambda: os.utime(solution),
        lambda: os.mkdir("@FOLDER@/folder"),
    ):
        try:
            action()
        except OSError as error:
            refusal = error
        else:
            return x + x
    raise refusal
