"""Compares with PyTorch's own functions, as a careful student would; run by the audit.

A right file that fails here says "Less exact" in its docstring; see docs/break.md.
"""

import pytest
import torch
from torch.testing import assert_close


@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax(problem, scale, dim):
    x = torch.randn(3, 5, 4) + scale
    assert_close(problem.softmax(x, dim), torch.softmax(x, dim))


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_similarity(problem, scale):
    q, k = torch.randn(2, 3, 8) * scale, torch.randn(2, 5, 8)
    want = q @ k.transpose(-2, -1)
    assert_close(problem.dot_product_similarity(q, k), want, rtol=1e-5, atol=1e-5 * scale)
