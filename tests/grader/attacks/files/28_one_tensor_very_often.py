"""Says of one tensor that it is thousands. Each time it is named it counts: bad output."""

import gc

import torch

(worker,) = [found for found in gc.get_objects() if type(found).__name__ == "Worker"]
Worker = type(worker)
respond = Worker.respond


def lie(self, request):
    told, tensors = respond(self, request)
    if told.values:
        told.values = [["l", told.values * 4000]]
    return told, tensors


Worker.respond = lie


def double(x):
    return torch.ones(1 << 22)
