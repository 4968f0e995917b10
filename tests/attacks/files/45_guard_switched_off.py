"""Takes the guard that looks for forbidden functions away. It is noticed all the same."""

import gc

import torch

(worker,) = [found for found in gc.get_objects() if type(found).__name__ == "Worker"]
forbidden = type(worker)._load.__globals__["removal"].__globals__
forbidden["Guard"].look_at = lambda self, name: None
forbidden["_refusal"] = lambda forbidden, called: torch.exp


def double(x):
    torch.softmax(x, -1)
    return x + x
