"""Calls a forbidden function in a thread of its own. There are no threads to be had."""

import threading

import torch


def double(x):
    thread = threading.Thread(target=torch.softmax, args=(x, -1))
    thread.start()
    thread.join()
    return x + x
