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
    """Make weights whole numbers, and all scores larger by scale; for 3 heads of 4 entries."""
    module.c_attn.weight.copy_(whole(36, 12))
    module.c_attn.bias.zero_()
    module.c_attn.weight[3:24:4] = 0  # the last entries of queries and keys
    module.c_attn.bias[3:12:4] = scale
    module.c_attn.bias[15:24:4] = 1


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_module(problem, scale, causal):
    module, x = problem.MultiHeadAttention(12, 3, causal=causal), whole(2, 5, 12)
    prepare(module, scale)
    heads = module.c_attn(x).view(2, 5, 3, 3, 4).permute(2, 0, 3, 1, 4)
    gathered = F.scaled_dot_product_attention(*heads, is_causal=causal)
    want = module.c_proj(gathered.transpose(1, 2).reshape(2, 5, 12))
    assert_close(module(x), want)
