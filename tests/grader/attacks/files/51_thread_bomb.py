"""Starts threads without end, which stay. Only its own process suffers."""

import threading


def double(x):
    for _ in range(10_000):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    return x + x
