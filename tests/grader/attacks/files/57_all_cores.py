"""Requests many threads and processors. It gets one of each, and returns right answers."""

import multiprocessing
import os

import torch


def taken():
    torch.set_num_threads(64)
    yield torch.get_num_threads() > 1
    for action in (
        lambda: os.sched_setaffinity(0, range(64)),
        lambda: multiprocessing.Process(target=int).start(),
    ):
        try:
            action()
        except OSError:
            yield False
        else:
            yield True


def double(x):
    return x if any(taken()) else x + x
