"""Judges for the hidden tests of problem 07."""

from functools import partial

import torch

from grader.code.tensors import parameters
from grader.run.compare import require
from shared.oracles import hidden_transformer_block, modules
from shared.oracles.tiny_gpt import starts_of

has_gradients = partial(
    hidden_transformer_block.has_gradients, near={"rtol": 1e-3, "atol": 1e-5}, part=1e-3
)


def slopes(number, model):
    """Return the gradients of a number by a right model's parameters, under all their names."""
    return modules.gradients(number, parameters(model), torch.ones_like(number))


def come_from_everywhere(batch, call, data, n_positions, batch_size):
    """Require starts in each quarter of a long text about equally often, and some starts twice."""
    starts = starts_of(batch, call, data, n_positions, batch_size)
    for number, count in enumerate(torch.bincount(starts // 250, minlength=4).tolist()):
        require(
            15 < count < 90,  # a right draw misses that less than once in millions of times
            f"{call}\n{count} of 200 rows begin at {250 * number} to {250 * number + 249}, a "
            "quarter of all possible starts; expected about 50.",
        )
    # Of 200 draws from 1000 some agree; that all differ comes once in a billion of times.
    twice = starts.unique().numel() < 200
    require(twice, f"{call}\nNo two rows begin at the same place. Each row is drawn by itself.")
