"""Problem 10: gradients by hand, an optimizer, and the step by which a model learns.

Run `uv run pytest` in this folder to test what you wrote here.
"""

from collections.abc import Iterable

import torch  # noqa: F401  (you will need it)
import torch.nn.functional as F  # noqa: F401
from torch import Tensor, nn


def softmax_backward(weights: Tensor, grad: Tensor) -> Tensor:
    """Return the gradient of a loss with respect to the scores of a softmax.

    Args:
        weights: the softmax of the scores along the last dimension, shape (..., m).
        grad: the gradient of the loss with respect to the weights, shape (..., m).

    Returns:
        The gradient with respect to the scores, shape (..., m).
    """
    # TODO: how does each score change every weight of its row?
    raise NotImplementedError


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
    # TODO: compute the weights again, then go back through each step of the attention.
    raise NotImplementedError


def cross_entropy_backward(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the gradient of the mean cross entropy with respect to the logits.

    Args:
        logits: shape (..., V).
        targets: the right tokens, int64, shape (...); a target of -100 does not count. At least one
            target counts.

    Returns:
        The gradient, shape (..., V). The loss is the mean over the targets that count.
    """
    # TODO: the gradient of one row, and how much a row counts.
    raise NotImplementedError


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale all gradients by one factor, in place, if their norm is above max_norm.

    Args:
        parameters: may be an iterator, such as model.parameters(). Parameters without a gradient
            (`grad` is None) are skipped.
        max_norm: the largest norm that all gradients together may have, above 0.

    Returns:
        The norm of all gradients together, before they were scaled.
    """
    # TODO: one norm of all gradients, then one factor for all gradients, if it is needed.
    raise NotImplementedError


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
    # TODO: three parts, one for each range of steps.
    raise NotImplementedError


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
        # TODO: check the options, keep the parameters, and start the state of each of them.
        raise NotImplementedError

    def step(self) -> None:
        """Change each parameter that has a gradient, in place; others stay unchanged."""
        # TODO: decay, the two running means, their correction, the step.
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Clear all gradients: set them to None, or to zeros."""
        # TODO: backward() adds to old gradients, so clear them.
        raise NotImplementedError


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
    # TODO: five lines, in the right order. loss.backward() is allowed here.
    raise NotImplementedError


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
    # TODO: every token counts the same, in a large batch or in a small one.
    raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
