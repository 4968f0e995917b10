"""What somebody adds to `4_ten_tests.py` who wants to catch them all."""

import pytest
import torch
from torch.nn import functional


def attention(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v)


def test_other_dimensions_are_left_alone(problem):
    q, k, v = torch.randn(2, 2, 2, 2), torch.randn(2, 2, 2, 2), torch.randn(2, 2, 2, 2)
    want = attention(q, k, v)
    assert torch.allclose(problem.scaled_dot_product_attention(q, k, v), want, atol=1e-5)


def test_values_have_a_width_of_their_own(problem):
    q, k, v = torch.randn(5, 5), torch.randn(5, 5), torch.randn(5, 3)
    want = attention(q, k, v)
    assert torch.allclose(problem.scaled_dot_product_attention(q, k, v), want, atol=1e-5)


@pytest.mark.parametrize("argument", [0, 1, 2])
def test_gradients(problem, argument):
    qkv = [torch.randn(n, 4, dtype=torch.float64, requires_grad=True) for n in (3, 5, 5)]
    (got,) = torch.autograd.grad(
        problem.scaled_dot_product_attention(*qkv).sin().sum(), qkv[argument]
    )
    (want,) = torch.autograd.grad(attention(*qkv).sin().sum(), qkv[argument])
    assert torch.allclose(got, want, atol=1e-10)


def test_all_digits(problem):
    q, k, v = (torch.randn(4, 4, dtype=torch.float64) for _ in "qkv")
    out = problem.scaled_dot_product_attention(q, k, v)
    assert (out - attention(q, k, v)).abs().max() < 1e-13


def test_random_state_stays(problem):
    q, k, v = (torch.randn(4, 4) for _ in "qkv")
    before = torch.get_rng_state()
    problem.scaled_dot_product_attention(q, k, v)
    problem.dot_product_variance(3, 5, True, generator=torch.Generator().manual_seed(1))
    assert torch.equal(before, torch.get_rng_state())


def test_module_in_float64_with_any_batch_and_again(problem):
    module = problem.ScaledAttention(6).double()
    for batch, length in ((1, 1), (3, 6), (2, 2)):
        x = torch.randn(batch, length, 6, dtype=torch.float64, requires_grad=True)
        want = attention(module.query(x), module.key(x), module.value(x))
        assert torch.allclose(module(x), want, atol=1e-12)
        names = list(dict(module.named_parameters()).values())
        got = torch.autograd.grad(module(x).sin().sum(), [x, *names], allow_unused=True)
        expected = torch.autograd.grad(want.sin().sum(), [x, *names], allow_unused=True)
        for a, b in zip(got, expected, strict=True):
            assert a is not None
            assert torch.allclose(a, b, atol=1e-10)


def test_tokens_of_zeros_and_tokens_that_are_alike(problem):
    module, x = problem.ScaledAttention(4), torch.randn(2, 5, 4)
    x[:, 1], x[:, 3] = 0, x[:, 2]
    want = attention(module.query(x), module.key(x), module.value(x))
    assert torch.allclose(module(x), want, atol=1e-6)
    q, k, v = (torch.randn(5, 4) for _ in "qkv")
    k[1] = 0
    assert torch.allclose(problem.scaled_dot_product_attention(q, k, v), attention(q, k, v))


def test_vectors_of_thousands(problem):
    q, k, v = torch.randn(3, 5000), torch.randn(4, 5000), torch.randn(4, 2)
    found = problem.scaled_dot_product_attention(q, k, v)
    assert torch.allclose(found, attention(q, k, v), atol=1e-4)


def test_module_in_training_and_evaluation(problem):
    module, x = problem.ScaledAttention(4), torch.randn(2, 3, 4)
    assert torch.equal(module(x), module(x))
    assert torch.equal(module.train()(x), module.eval()(x))


def test_parameters(problem):
    module = problem.ScaledAttention(8)
    named = (getattr(module, layer) for layer in ("query", "key", "value"))
    layers = [p for layer in named for p in (layer.weight, layer.bias)]
    assert {id(p) for p in module.parameters()} == {id(p) for p in layers}
    assert problem.ScaledAttention().query.weight.shape == (768, 768)


@pytest.mark.parametrize("d_k", [1, 5, 20])
def test_variance_of_many(problem, d_k):
    generator = torch.Generator().manual_seed(0)
    plain = problem.dot_product_variance(d_k, 400, False, generator=generator)
    scaled = problem.dot_product_variance(d_k, 400, True, generator=generator)
    assert isinstance(plain, float)
    assert 0.5 * d_k < plain < 1.7 * d_k
    assert 0.5 < scaled < 1.7


def test_variance_of_two_is_that_of_a_population(problem):
    generator = torch.Generator().manual_seed(0)
    found = [problem.dot_product_variance(1, 2, False, generator=generator) for _ in range(300)]
    assert 0.3 < sum(found) / len(found) < 0.7


def test_the_global_generator_is_used(problem):
    numbers = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        numbers.append(problem.dot_product_variance(4, 50, True))
    assert numbers[0] == numbers[1] != numbers[2]
    assert problem.dot_product_variance(4, 50, True) != numbers[2]
