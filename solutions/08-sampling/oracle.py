"""Compares with PyTorch's own functions, as a careful student would; run by the audit.

A right file that fails here says "Less exact" in its docstring; see docs/break.md.
"""

import pytest
import torch
from torch.testing import assert_close


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_temperature(problem, scale):
    logits = torch.randn(4, 9) * scale
    for temperature in (0.3, 1.0, 7.0):
        assert_close(problem.apply_temperature(logits, temperature), logits / temperature)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_top_k(problem, scale):
    logits = torch.randn(4, 9) * scale
    for k in (1, 3, 9, 20):
        least = torch.topk(logits, min(k, 9)).values[..., -1:]
        assert_close(problem.keep_top_k(logits, k), logits.masked_fill(logits < least, -torch.inf))
