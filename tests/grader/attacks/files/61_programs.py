"""Tries to run programs. The sandbox forbids all of them."""

import os
import subprocess

COMMAND = "touch @FOLDER@/touched; true"


def double(x):
    if os.system(COMMAND) == 0:
        return x + x
    subprocess.run(COMMAND, shell=True, check=True)
    return x + x
