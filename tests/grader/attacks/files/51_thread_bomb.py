"""Starts threads endlessly. Only its own process is affected."""

import threading


def double(x):
    for _ in range(10_000):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    return x + x
