"""Compares with PyTorch's own functions, as a careful student would; run by the audit.

A right file that fails here says "Less exact" in its docstring; see docs/break.md.
"""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_gelu(problem, scale):
    x = torch.randn(20, 50) * scale
    assert_close(problem.gelu(x), F.gelu(x, approximate="tanh"))


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_layer_norm(problem, scale):
    for _ in range(10):
        norm, x = problem.LayerNorm(8), (torch.randn(2, 5, 8) + torch.randn(8)) * scale
        with torch.no_grad():
            norm.weight.normal_()
            norm.bias.normal_()
            assert_close(norm(x), F.layer_norm(x, (8,), norm.weight, norm.bias))


def test_block(problem):
    for _ in range(10):
        block, x = problem.Block(8, 2), torch.randn(2, 5, 8)
        with torch.no_grad():
            middle = x + block.attn(F.layer_norm(x, (8,), block.ln_1.weight, block.ln_1.bias))
            normed = F.layer_norm(middle, (8,), block.ln_2.weight, block.ln_2.bias)
            hidden = F.gelu(block.mlp.c_fc(normed), approximate="tanh")
            assert_close(block(x), middle + block.mlp.c_proj(hidden))
