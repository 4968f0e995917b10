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
def test_masked_softmax(problem, scale):
    mask = torch.ones(5, 5, dtype=torch.bool).tril()
    scores = torch.randn(2, 5, 5) + scale
    want = torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)
    assert_close(problem.masked_softmax(scores, mask), want)


@pytest.mark.parametrize("scale", SCALES)
@torch.no_grad()
def test_module(problem, scale):
    module, x = problem.CausalAttention(4, 16), whole(2, 5, 4)
    prepare(module, scale)
    q, k, v = module.query(x), module.key(x), module.value(x)
    assert_close(module(x), F.scaled_dot_product_attention(q, k, v, is_causal=True))
