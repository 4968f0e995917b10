"""Compares with PyTorch's own functions, as a careful student would; run by the audit.

A right file that fails here says "Less exact" in its docstring; see docs/break.md. Scores are whole
numbers far from 0, which are exact in whatever order they are summed.
"""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

SCALES = [0.0, 1.0, 30.0, 1e4]


def whole(*sizes):
    return torch.randint(-2, 3, sizes).float()


def prepare(module, scale):
    """Make weights whole numbers, and all scores larger by scale."""
    for layer in (module.query, module.key, module.value):
        layer.weight.copy_(whole(4, 4))
        layer.bias.zero_()
    for layer, last in ((module.query, scale), (module.key, 1.0)):
        layer.weight[-1] = 0
        layer.bias[-1] = last


@pytest.mark.parametrize("scale", SCALES)
@torch.no_grad()
def test_module(problem, scale):
    module, x = problem.SimpleAttention(4), whole(2, 5, 4)
    prepare(module, scale)
    q, k, v = module.query(x), module.key(x), module.value(x)
    assert_close(module(x), F.scaled_dot_product_attention(q, k, v, scale=1.0))
