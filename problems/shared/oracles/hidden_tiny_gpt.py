"""Compute and judge gradients in the hidden tests of problem 07."""

from functools import partial

import torch

from grader.code.tensors import parameters
from shared.oracles import hidden_transformer_block, modules

has_gradients = partial(
    hidden_transformer_block.has_gradients, near={"rtol": 1e-3, "atol": 1e-5}, part=1e-3
)


def slopes(number, model):
    """Return the gradients of a number with respect to the parameters of a correct model.

    A parameter with several names occurs under each of them.
    """
    return modules.gradients(number, parameters(model), torch.ones_like(number))
