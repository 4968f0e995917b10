"""Tries to start a process that outlives the test. The process can't start."""

import os
import time


def double(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open("@FOLDER@/daemon.txt", "w") as file:
                file.write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    return x + x
