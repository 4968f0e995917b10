"""Calls a forbidden function by another name. The call is still recorded."""

import torch

function = getattr(torch.ops.aten, "soft" + "max")


def double(x):
    function(x, -1)
    return x + x
