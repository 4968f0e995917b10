"""The numbers behind tolerances and numbers of steps in the tests of 06 and 07."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor

from grader.code.loading import load_module
from grader.course import own_course

SOLUTIONS = own_course().root / "solutions"
BLOCKS = SOLUTIONS / "06-transformer-block"
RIGHT_BLOCKS = [BLOCKS / "problem.py", *sorted(BLOCKS.glob("variants/*.py"))]
MODEL = SOLUTIONS / "07-tiny-gpt/problem.py"


def far_rows(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return rows with mean 10,000 and about variance 1, and their LayerNorm."""
    rng = torch.Generator().manual_seed(0)
    x = (1e4 + torch.randn(300, 8, generator=rng, dtype=torch.float64)).to(dtype)
    centred = x.double() - 1e4  # exact, so that nothing is lost in the oracle
    centred = centred - centred.mean(-1, keepdim=True)
    return x, centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 4e-3), (torch.float64, 1e-8)])
@pytest.mark.parametrize("path", RIGHT_BLOCKS, ids=lambda path: path.stem)
def test_right_ones_differ_little_far_from_zero(
    path: Path, dtype: torch.dtype, bound: float
) -> None:
    """The tests allow 2e-2 and 1e-7 there."""
    x, expected = far_rows(dtype)
    found = load_module(path, "block").LayerNorm(8).to(dtype)(x)
    assert (found - expected).abs().max() < bound


def test_the_mean_of_squares_less_the_squared_mean_fails_there() -> None:
    x, expected = far_rows(torch.float32)
    mean = x.mean(-1, keepdim=True)
    variance = x.square().mean(-1, keepdim=True) - mean.square()
    found = (x - mean) / (variance + 1e-5).sqrt()
    assert not (found - expected).abs().max() < 2e-2


@pytest.mark.slow  # most of it loads torch's optimizers
@pytest.mark.parametrize("seed", range(3))
def test_a_model_of_27_000_numbers_learns_a_batch_within_a_hundred_steps(seed: int) -> None:
    """AdamW with a rate of 3e-3 takes 67 to 81 steps; the tests of problem 07 allow 300."""
    torch.manual_seed(seed)
    module = load_module(MODEL, "model")
    config = module.GPTConfig(vocab_size=32, n_positions=16, n_embd=32, n_layer=2, n_head=4)
    model = module.GPT(config)
    assert sum(weight.numel() for weight in model.parameters()) == 27_008
    text = torch.randint(32, (4, 17))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses: list[float] = []
    while len(losses) < 100 and (not losses or losses[-1] >= 0.1):
        _, loss = model(text[:, :-1], text[:, 1:])
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert 50 < len(losses) < 100
