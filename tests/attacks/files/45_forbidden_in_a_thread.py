"""Calls a forbidden function in a thread of its own. It is noticed all the same."""

import threading

import torch


def double(x):
    thread = threading.Thread(target=torch.softmax, args=(x, -1))
    thread.start()
    thread.join()
    return x + x
