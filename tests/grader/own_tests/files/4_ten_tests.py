"""What somebody writes who has read the rules."""

import pytest
import torch
from torch.nn import functional


def attention(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v)


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_leading_dimensions(problem, leading):
    q, k, v = (torch.randn(*leading, n, 4) for n in (3, 5, 5))
    assert torch.allclose(
        problem.scaled_dot_product_attention(q, k, v), attention(q, k, v), atol=1e-5
    )


def test_one_wide(problem):
    q, k, v = torch.randn(3, 1), torch.randn(5, 1), torch.randn(5, 2)
    assert torch.allclose(
        problem.scaled_dot_product_attention(q, k, v), attention(q, k, v), atol=1e-5
    )


def test_double_precision(problem):
    q, k, v = (torch.randn(2, n, 4, dtype=torch.float64) for n in (3, 5, 5))
    out = problem.scaled_dot_product_attention(q, k, v)
    assert out.dtype is torch.float64
    assert torch.allclose(out, attention(q, k, v), atol=1e-12)


def test_large_scores(problem):
    q, k, v = 1000 * torch.randn(3, 4), 1000 * torch.randn(5, 4), torch.randn(5, 2)
    assert problem.scaled_dot_product_attention(q, k, v).isfinite().all()


def test_arguments_stay(problem):
    q, k, v = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 2)
    copies = q.clone(), k.clone(), v.clone()
    problem.scaled_dot_product_attention(q, k, v)
    assert all(torch.equal(a, b) for a, b in zip((q, k, v), copies, strict=True))


@pytest.mark.parametrize("bias", [True, False])
def test_module(problem, bias):
    module, x = problem.ScaledAttention(4, bias=bias), torch.randn(2, 3, 4)
    assert (module.query.bias is not None) is bias
    want = attention(module.query(x), module.key(x), module.value(x))
    assert torch.allclose(module(x), want, atol=1e-5)


def test_variance_grows_with_d_k(problem):
    assert abs(problem.dot_product_variance(64, 500, False) - 64) < 20


def test_variance_is_one_when_scaled(problem):
    assert abs(problem.dot_product_variance(64, 500, True) - 1) < 0.3


def test_the_same_seed_gives_the_same_number(problem):
    numbers = [
        problem.dot_product_variance(4, 50, True, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    ]
    assert numbers[0] == numbers[1] != numbers[2]
