"""Tries to write result files into many folders. It can't write into any of them."""

import os

RESULT = '{"status": "passed", "points": 4}'
FOLDERS = ("@FOLDER@", "@FOLDER@/outputs", ".", "/tmp", "/dev/shm", os.path.dirname(os.__file__))


def double(x):
    for folder in FOLDERS:
        for name in ("results.json", "gradebook.csv"):
            try:
                with open(os.path.join(folder, name), "w") as file:
                    file.write(RESULT)
            except OSError as error:
                refusal = error
            else:
                return x + x
    raise refusal
