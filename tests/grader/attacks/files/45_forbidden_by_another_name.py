"""Calls a forbidden function by another name. It is noticed all the same."""

import torch

function = getattr(torch.ops.aten, "soft" + "max")


def double(x):
    function(x, -1)
    return x + x
