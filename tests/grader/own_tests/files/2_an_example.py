"""One example, worked out by hand."""

import torch


def test_one_query_between_two_keys(problem):
    q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    k = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    v = torch.tensor([[1.0], [0.0]])
    out = problem.scaled_dot_product_attention(q, k, v)
    assert abs(out.item() - 0.7310586) < 1e-5  # scores 1 and 0
