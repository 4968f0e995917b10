"""Problem 10, reference solution."""

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def softmax_backward(weights: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of a loss with respect to the scores of a softmax.

    Args:
        weights: the softmax of the scores along the last dimension, shape (..., m).
        grad: the gradient of the loss with respect to the weights, shape (..., m).

    Returns:
        The gradient with respect to the scores, shape (..., m).
    """
    return weights * (grad - (grad * weights).sum(-1, keepdim=True))


def attention_backward(
    q: Tensor, k: Tensor, v: Tensor, grad: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of a loss with respect to the inputs of scaled dot product attention.

    Args:
        q: queries, shape (..., n, d_k).
        k: keys, shape (..., m, d_k).
        v: values, shape (..., m, d_v).
        grad: the gradient of the loss with respect to the output, shape (..., n, d_v).
        mask: bool, broadcastable to (..., n, m), True where a query may attend to a key; each row
            has at least one True. None means that every query attends to every key.

    Returns:
        The gradients with respect to q, k and v, each in the shape of its tensor.
    """
    scale = q.shape[-1] ** -0.5
    scores = q @ k.mT * scale  # (..., n, m)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1)
    # A masked score has the weight 0, so its gradient is 0.
    grad_scores = softmax_backward(weights, grad @ v.mT) * scale
    return grad_scores @ k, grad_scores.mT @ q, weights.mT @ grad


def cross_entropy_backward(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the gradient of the mean cross entropy with respect to the logits.

    Args:
        logits: shape (..., V).
        targets: the right tokens, int64, shape (...); a target of -100 does not count. At least one
            target counts.

    Returns:
        The gradient, shape (..., V). The loss is the mean over the targets that count.
    """
    counts = (targets != -100).unsqueeze(-1)  # (..., 1)
    right = F.one_hot(targets.clamp(min=0), logits.shape[-1])
    # Ignored targets have the gradient 0. The mean divides all other gradients by their number.
    return torch.where(counts, logits.softmax(-1) - right, 0) / counts.sum()


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale all gradients by one factor, in place, if their norm is above max_norm.

    Args:
        parameters: may be an iterator, such as model.parameters(). Parameters without a gradient
            (`grad` is None) are skipped.
        max_norm: the largest norm that all gradients together may have, above 0.

    Returns:
        The norm of all gradients together, before they were scaled.
    """
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(float(gradient.square().sum()) for gradient in gradients))
    if norm > max_norm:
        for gradient in gradients:
            gradient *= max_norm / norm
    return norm


def learning_rate(step: int, warmup: int, total: int, peak: float, floor: float) -> float:
    """Return the learning rate of a step. It rises along a line, then falls along a cosine.

    Args:
        step: the number of the step, from 0.
        warmup: the number of steps up to the peak; if 0, the rate starts at the peak.
        total: the step at which the rate reaches the floor; above warmup.
        peak: the largest learning rate.
        floor: the learning rate from step `total` on.

    Returns:
        The learning rate.
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    if step >= total:
        return floor
    done = (step - warmup) / (total - warmup)
    return floor + (peak - floor) * (1 + math.cos(math.pi * done)) / 2


class AdamW:
    """Adam with decoupled weight decay.

    Args:
        parameters: the parameters to train; may be an iterator, such as model.parameters().
        lr: the learning rate.
        betas: each step multiplies the old mean of the gradients by the first factor, and the old
            mean of their squares by the second.
        eps: a number that is added to the root of the mean square.
        weight_decay: each step multiplies a parameter by 1 - lr * weight_decay.

    Attributes:
        lr: the learning rate; it may be set between steps.

    Raises:
        ValueError: lr, eps or weight_decay is negative, or a beta isn't in [0, 1).
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        if lr < 0 or eps < 0 or weight_decay < 0:
            raise ValueError("lr, eps and weight_decay should not be negative")
        if not all(0 <= beta < 1 for beta in betas):
            raise ValueError(f"betas = {betas}; each should be in [0, 1)")
        self.parameters = list(parameters)  # an iterator could be used only once
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.steps = [0] * len(self.parameters)
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self) -> None:
        """Change each parameter that has a gradient, in place; others stay unchanged."""
        beta1, beta2 = self.betas
        for i, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            self.steps[i] += 1
            mean, square = self.means[i], self.squares[i]
            mean.mul_(beta1).add_(p.grad, alpha=1 - beta1)
            square.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
            # Both means began at 0, so the first means are too small by these factors.
            mean_hat = mean / (1 - beta1 ** self.steps[i])
            square_hat = square / (1 - beta2 ** self.steps[i])
            p *= 1 - self.lr * self.weight_decay
            p -= self.lr * mean_hat / (square_hat.sqrt() + self.eps)

    def zero_grad(self) -> None:
        """Clear all gradients: set them to None, or to zeros."""
        for p in self.parameters:
            p.grad = None


def train_step(
    model: nn.Module, idx: Tensor, targets: Tensor, optimizer: "AdamW", max_norm: float = 1.0
) -> float:
    """Train a model for one step.

    Args:
        model: returns logits (B, T, V) for tokens (B, T); is in training mode.
        idx: the tokens, int64, shape (B, T).
        targets: the next tokens, int64, shape (B, T).
        optimizer: an object with the methods `step` and `zero_grad`.
        max_norm: the largest norm that all gradients together may have; above it, they are clipped.

    Returns:
        The mean cross entropy before the step, a Python float.
    """
    optimizer.zero_grad()
    loss = F.cross_entropy(model(idx).flatten(0, 1), targets.flatten())
    loss.backward()
    clip_gradients(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> float:
    """Return the mean loss of a model over all tokens of some batches.

    The model runs in evaluation mode and without gradients. Afterwards it is in the same mode as
    before.

    Args:
        model: returns logits (B, T, V) for tokens (B, T).
        batches: (tokens, targets) pairs, each tensor (B, T); B and T may differ between pairs.

    Returns:
        The mean cross entropy per token, a Python float.
    """
    was_training = model.training
    model.eval()
    total, count = 0.0, 0
    for idx, targets in batches:
        logits = model(idx).flatten(0, 1)
        total += F.cross_entropy(logits, targets.flatten(), reduction="sum").item()
        count += targets.numel()
    model.train(was_training)
    return total / count
