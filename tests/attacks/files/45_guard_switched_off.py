"""Takes the guard that looks for forbidden functions away. It is noticed all the same."""

import torch

import grader.forbidden

grader.forbidden.Guard.look_at = lambda self, name: None
grader.forbidden._refusal = lambda forbidden, called: torch.exp


def double(x):
    torch.softmax(x, -1)
    return x + x
