"""Calls a forbidden function in a thread. The thread cannot start."""

import threading

import torch


def double(x):
    thread = threading.Thread(target=torch.softmax, args=(x, -1))
    thread.start()
    thread.join()
    return x + x
