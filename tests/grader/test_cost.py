"""Equal computations have the same cost in all of torch's gradient modes."""

import pytest
import torch
import torch.nn.functional as F

from grader.code.cost import counting
from grader.code.forbidden import Guard

MODES = [torch.enable_grad, torch.no_grad, torch.inference_mode]


def cost(function, *args, **kwargs):
    with counting() as counted:
        function(*args, **kwargs)
    return counted.operations, counted.elements, counted.largest


def attention_by_hand(q, k, v):
    return torch.softmax(q @ k.mT, -1) @ v


def torch_attention(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)


@pytest.fixture
def qkv():
    return torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_attention_costs_its_two_products(qkv, mode, requires_grad):
    inputs = [x.requires_grad_(requires_grad) for x in qkv]
    mask = torch.ones(5, 7, dtype=torch.bool).tril(2)
    expected = 2 * 3 * 5 * 7 * 2 * (8 + 4), 6 * 5 * (7 + 7 + 4), 6 * 5 * 7
    with mode():
        assert cost(attention_by_hand, *inputs) == expected
        assert cost(torch_attention, *inputs)[0] == expected[0]
        assert cost(torch_attention, *inputs, mask)[0] == expected[0]
        assert cost(torch.ops.aten.scaled_dot_product_attention, *inputs)[0] == expected[0]
        assert cost(torch.ops.aten.scaled_dot_product_attention.default, *inputs)[0] == expected[0]


@pytest.mark.parametrize("function", [attention_by_hand, torch_attention])
def test_backward_passes_are_counted(function):
    inputs = [torch.randn(1, 2, 5, 8, requires_grad=True) for _ in range(3)]
    forward = cost(function, *inputs)[0]
    assert cost(lambda: function(*inputs).sum().backward())[0] == 3 * forward


@pytest.mark.slow
def test_torchs_causal_masks_work_while_counting():
    from torch.nn.attention.bias import causal_lower_right

    q, k = torch.randn(1, 2, 2, 8), torch.randn(1, 2, 5, 8)

    def attend():
        return F.scaled_dot_product_attention(q, k, k, attn_mask=causal_lower_right(2, 5))

    assert cost(attend)[0] == 2 * 2 * 2 * 5 * 16
    with Guard(("MultiheadAttention",)):
        attend()


PRODUCTS = {
    "linear": (lambda x, w: F.linear(x, w, torch.zeros(4)), 2 * 24 * 4),
    "matmul": (lambda x, w: x @ w.mT, 2 * 24 * 4),
    "einsum": (lambda x, w: torch.einsum("btc,dc->btd", x, w), 2 * 24 * 4),
    "vector": (lambda x, w: x @ w[0], 2 * 24),
    "dot": (lambda x, w: x[0, 0] @ w[0], 2 * 4),
    "addmv": (lambda x, w: torch.addmv(x[0, :, 0], x[0], w[0]), 2 * 12),
    "addmm": (lambda x, w: torch.addmm(w, w, w), 2 * 64),
    "in place": (lambda x, w: w.clone().addmm_(w, w), 2 * 64),
    "entry by entry": (lambda x, w: (x[..., None, :] * w).sum(-1), 0),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_each_product_has_the_expected_cost(name, mode):
    function, expected = PRODUCTS[name]
    with mode():
        assert cost(function, torch.randn(2, 3, 4), torch.randn(4, 4))[0] == expected


def test_views_cost_nothing_and_in_place_operations_are_counted():
    x = torch.randn(4, 6)
    assert cost(lambda: x.view(6, 4).mT[1:].expand(3, 3, 6)) == (0, 0, 0)
    assert cost(lambda: x.mul_(2)) == (0, 24, 0)
    assert cost(lambda: torch.add(x, x, out=x)) == (0, 24, 0)
    assert cost(lambda: torch._foreach_mul_([x, x], 2.0)) == (0, 48, 0)
    assert cost(lambda: torch.cat([x, x])) == (0, 48, 48)
    assert cost(lambda: x.mT.contiguous()) == (0, 0, 24)


def test_counting_can_be_nested():
    x = torch.ones(2, 2)
    with counting() as outer:
        x @ x
        with counting() as inner:
            x @ x
        with pytest.raises(ValueError, match="no"), counting():
            raise ValueError("no")
    x @ x
    assert (outer.operations, inner.operations) == (32, 16)
