"""Takes the guard that looks for forbidden functions away. It is noticed all the same."""

import gc

import torch

(worker,) = [found for found in gc.get_objects() if type(found).__name__ == "Worker"]
removal = type(worker)._load.__globals__["remove"].__globals__
removal["_refusal"] = lambda forbidden, called: torch.exp
removal["refuse"].__globals__["Guard"].look_at = lambda self, name: None


def double(x):
    torch.softmax(x, -1)
    return x + x
