"""Right answers by autograd and PyTorch's AdamW, for problem 10's `explore.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


def softmax_backward(weights: Tensor, grad: Tensor) -> Tensor:
    """Return what autograd says of a softmax that has given these weights."""
    scores = weights.log().requires_grad_()  # softmax undoes the logarithm
    (found,) = torch.autograd.grad(scores.softmax(-1), scores, grad)
    return found


class AdamW(torch.optim.AdamW):
    """PyTorch's, one parameter after another."""

    def __init__(self, parameters: Any, **options: Any) -> None:
        super().__init__(parameters, foreach=False, **options)

    @property
    def lr(self) -> float:
        """The learning rate of all parameters; it may be set between steps."""
        return float(self.param_groups[0]["lr"])

    @lr.setter
    def lr(self, lr: float) -> None:
        for group in self.param_groups:
            group["lr"] = lr


def learning_rate(step: int, warmup: int, total: int, peak: float, floor: float) -> float:
    """Return the learning rate of a step, read off NumPy's table of half a wave."""
    if step < warmup:
        return float(np.linspace(0, peak, warmup + 1)[step + 1])
    length = total - warmup
    wave = np.hanning(2 * length + 1)[length:]  # from 1 down to 0
    return float(floor + (peak - floor) * wave[min(step - warmup, length)])


def train_step(
    model: nn.Module, idx: Tensor, targets: Tensor, optimizer: Any, max_norm: float = 1.0
) -> float:
    """Return the loss before a step of training."""
    model.zero_grad()
    loss = _loss(model, idx, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


def evaluate(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> float:
    """Return the mean loss over all tokens, in evaluation mode."""
    mode = model.training
    model.eval()
    with torch.no_grad():
        losses = [_loss(model, *batch).item() * batch[0].numel() for batch in batches]
    model.train(mode)
    return sum(losses) / sum(idx.numel() for idx, _ in batches)


def _loss(model: nn.Module, idx: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(model(idx).mT, targets)
