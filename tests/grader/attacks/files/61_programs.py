"""Runs programs. It can't."""

import os
import subprocess


def double(x):
    if os.system("touch @FOLDER@/touched") == 0:
        return x + x
    subprocess.run(["touch", "@FOLDER@/touched"], check=True)
    return x + x
