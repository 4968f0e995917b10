"""The function on some inputs, and the module on one."""

import torch
from torch.nn import functional


def test_function(problem):
    q, k, v = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)
    want = functional.scaled_dot_product_attention(q, k, v)
    assert torch.allclose(problem.scaled_dot_product_attention(q, k, v), want, atol=1e-5)


def test_module(problem):
    module, x = problem.ScaledAttention(4), torch.randn(2, 3, 4)
    q, k, v = module.query(x), module.key(x), module.value(x)
    want = functional.scaled_dot_product_attention(q, k, v)
    assert torch.allclose(module(x), want, atol=1e-5)
