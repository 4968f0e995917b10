"""The definitions in part two's tests give the same as torch's layers."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from grader.run.rng import Rng
from shared import expected
from shared.oracles.gpt import batched, block_by_hand, gelu_by_hand, gpt_by_hand
from shared.small_gpt import block_weights, gpt_weights
from shared.worked_example import turned

SIZES = [(2, 4, 6, 2), (1, 1, 4, 4), (3, 5, 8, 1)]


def doubles(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: weight.double() for name, weight in weights.items()}


def test_gelu_is_torchs_with_tanh() -> None:
    x = torch.linspace(-6, 6, 97, dtype=torch.float64)
    by_hand = torch.tensor([gelu_by_hand(number) for number in x.tolist()], dtype=torch.float64)
    torch.testing.assert_close(by_hand, F.gelu(x, approximate="tanh"), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("batch", "seq_len", "n_embd", "n_head"), SIZES)
def test_a_block_is_torchs_encoder_layer(
    batch: int, seq_len: int, n_embd: int, n_head: int
) -> None:
    rng = Rng(1)
    weights = doubles(block_weights(rng, n_embd))
    x = rng.normal(batch, seq_len, n_embd, dtype=torch.float64)
    block = expected.Block(n_embd, n_head).double()
    block.set_weights(weights)
    by_hand = batched(block_by_hand, x, weights, n_head)
    torch.testing.assert_close(by_hand, block(x), rtol=0, atol=1e-13)


def test_a_gpt_is_embeddings_blocks_a_norm_and_the_embeddings_again() -> None:
    weights = doubles(gpt_weights(Rng(2), 11, 6, 8, 2))
    tokens = torch.tensor([[3, 0, 7, 10], [1, 1, 2, 5]])
    x = weights["transformer.wte.weight"][tokens] + weights["transformer.wpe.weight"][:4]
    for number in range(2):
        start = f"transformer.h.{number}."
        block = expected.Block(8, 2).double()
        block.set_weights(
            {n.removeprefix(start): w for n, w in weights.items() if n.startswith(start)}
        )
        x = block(x)
    norm = weights["transformer.ln_f.weight"], weights["transformer.ln_f.bias"]
    logits = F.layer_norm(x, (8,), *norm) @ weights["lm_head.weight"].T
    by_hand = batched(gpt_by_hand, tokens, weights, 2, dtype=torch.float64)
    torch.testing.assert_close(by_hand, logits, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(4,), (1, 1), (3, 2), (2, 1, 3)])
def test_what_is_turned_is_a_copy(shape: tuple[int, ...]) -> None:
    """A change of the returned tensor doesn't change the original."""
    x = Rng(1).normal(*shape)
    before = x.clone()
    other = turned(x)
    assert torch.equal(other, x)
    other.zero_()
    assert torch.equal(x, before)
