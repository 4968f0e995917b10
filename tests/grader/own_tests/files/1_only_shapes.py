"""The first thing that one thinks of."""

import torch


def test_shapes(problem):
    out = problem.scaled_dot_product_attention(
        torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)
    )
    assert out.shape == (2, 3, 6)
