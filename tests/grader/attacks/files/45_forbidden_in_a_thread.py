"""Calls a forbidden function in a thread. It cannot start threads."""

import threading

import torch


def double(x):
    thread = threading.Thread(target=torch.softmax, args=(x, -1))
    thread.start()
    thread.join()
    return x + x
