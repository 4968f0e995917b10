"""Problem 10: gradients by hand, an optimizer, and the step by which a model learns.

Run `uv run pytest` in this folder to test what you wrote here.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F  # noqa: F401  (you will need it)
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
            has at least one True. None when every query attends to every key.

    Returns:
        The gradients with respect to q, k and v, each in the shape of its tensor.
    """
    # TODO: the weights once more, and then back through each step of the attention.
    raise NotImplementedError


def cross_entropy_backward(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the gradient of the mean cross entropy with respect to the logits.

    Args:
        logits: shape (..., V).
        targets: the right tokens, int64, shape (...); a target of -100 does not count. At least one
            counts.

    Returns:
        The gradient, shape (..., V). The loss is the mean over the targets that count.
    """
    # TODO: the gradient of one row, and how much a row counts.
    raise NotImplementedError


def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    """Scale all gradients by one factor, in place, if their norm is above max_norm.

    Args:
        parameters: may be an iterator, such as model.parameters(). Those with a `grad` of None are
            skipped.
        max_norm: the largest norm that all gradients together may have, above 0.

    Returns:
        The norm of all gradients together, before they were scaled.
    """
    # TODO: one norm of everything, then one factor for everything, if it is needed.
    raise NotImplementedError


def learning_rate(step: int, warmup: int, total: int, peak: float, floor: float) -> float:
    """Return the learning rate of a step: up along a line, then down along a cosine.

    Args:
        step: the number of the step, from 0.
        warmup: how many steps it takes to reach the peak; 0 for none.
        total: from this step on it is the floor; above warmup.
        peak: the largest learning rate.
        floor: the last one.

    Returns:
        The learning rate.
    """
    # TODO: three parts, one for each range of steps.
    raise NotImplementedError


class AdamW:
    """Adam with decoupled weight decay.

    Args:
        parameters: what to train; may be an iterator, such as model.parameters().
        lr: the learning rate.
        betas: how much the running means of gradients and of their squares keep at each step.
        eps: is added to the root of the mean square.
        weight_decay: each step takes lr * weight_decay of a parameter away.

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
        """Change each parameter in place by its gradient; one without a gradient is left alone."""
        # TODO: decay, the two running means, their correction, the step.
        raise NotImplementedError

    def zero_grad(self) -> None:
        """Clear all gradients: set them to None, or to zeros."""
        # TODO: backward() adds to what is there already.
        raise NotImplementedError


def train_step(
    model: nn.Module, idx: Tensor, targets: Tensor, optimizer: "AdamW", max_norm: float = 1.0
) -> float:
    """Train a model for one step.

    Args:
        model: gives logits (B, T, V) for tokens (B, T); it is in training mode.
        idx: the tokens, int64, shape (B, T).
        targets: the tokens that should follow, int64, shape (B, T).
        optimizer: has the methods `step` and `zero_grad`.
        max_norm: gradients are clipped to this norm.

    Returns:
        The mean cross entropy before the step, a Python float.
    """
    # TODO: five lines, in the right order. loss.backward() is allowed here.
    raise NotImplementedError


def evaluate(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> float:
    """Return the mean loss of a model over all tokens of some batches.

    It is taken in evaluation mode and without gradients, and the model is left in the mode in which
    it was.

    Args:
        model: gives logits (B, T, V) for tokens (B, T).
        batches: pairs of tokens and targets, each (B, T), not all of one size.

    Returns:
        The mean cross entropy per token, a Python float.
    """
    # TODO: every token counts the same, in a large batch or in a small one.
    raise NotImplementedError


# The rest is given: a model to train, and a class by which the tests use a model.


class SmallModel(nn.Module):
    """Guesses the next token by a token and its position. Given.

    Args:
        vocab_size: the number of tokens.
        n_positions: the largest length of a sequence.
        n_embd: the embedding width C.
        dropout: the share of hidden activations that are dropped in training.
    """

    def __init__(
        self, vocab_size: int, n_positions: int, n_embd: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(n_positions, n_embd)
        self.hidden = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx: Tensor) -> Tensor:
        """Return the logits (B, T, V) for tokens (B, T)."""
        x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
        return self.lm_head(self.dropout(torch.tanh(self.hidden(x))))


class SGD:
    """Plain gradient descent, as an example of an optimizer. Given."""

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float) -> None:
        self.parameters = list(parameters)
        self.lr = lr

    @torch.no_grad()
    def step(self) -> None:
        """Change each parameter in place by lr times its gradient."""
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter -= self.lr * parameter.grad

    def zero_grad(self) -> None:
        """Clear all gradients."""
        for parameter in self.parameters:
            parameter.grad = None


def optimizer_of(model: nn.Module, **options: float | tuple[float, float]) -> AdamW:
    """Return your AdamW for a model. Given."""
    return AdamW(model.parameters(), **options)  # type: ignore[arg-type]


class Bench:
    """A model with an optimizer, for the tests. Given; leave it unchanged.

    When your code is graded, it runs in a separate process, and tests use its tensors by these
    methods.

    Args:
        weights: tensors by name: those of a SmallModel, or any, which are then all there is.
        dropout: that of the SmallModel.
        sgd: the learning rate of an SGD, which takes the place of your AdamW; None for AdamW.
        options: those of AdamW.
    """

    def __init__(
        self,
        weights: dict[str, Tensor],
        dropout: float = 0.0,
        sgd: float | None = None,
        **options: float | tuple[float, float],
    ) -> None:
        if "wte.weight" in weights:
            vocab_size, n_embd = weights["wte.weight"].shape
            self.model = SmallModel(vocab_size, len(weights["wpe.weight"]), n_embd, dropout)
            self.model.to(weights["wte.weight"].dtype).load_state_dict(weights)
        else:
            self.model = nn.ParameterDict({name: w.clone() for name, w in weights.items()})
        if sgd is None:
            self.optimizer = optimizer_of(self.model, **options)
        else:
            self.optimizer = SGD(self.model.parameters(), sgd)

    def weights(self) -> dict[str, Tensor]:
        """Return a copy of each parameter, by name."""
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def gradients(self) -> dict[str, Tensor | None]:
        """Return a copy of each gradient, by name; None where there is none."""
        named = self.model.named_parameters()
        return {name: None if p.grad is None else p.grad.clone() for name, p in named}

    def set_gradients(self, gradients: dict[str, Tensor]) -> None:
        """Give parameters a gradient; those that aren't named have none."""
        for name, parameter in self.model.named_parameters():
            parameter.grad = gradients[name].clone() if name in gradients else None

    def set_lr(self, lr: float) -> None:
        """Set the optimizer's learning rate."""
        self.optimizer.lr = lr

    def train(self, mode: bool = True) -> None:
        """Put the model into training mode, or into evaluation mode."""
        self.model.train(mode)

    def modes(self) -> list[bool]:
        """Return whether the model and each of its layers is in training mode."""
        return [module.training for module in self.model.modules()]

    def clip(self, max_norm: float) -> float:
        """Clip the gradients of the model by your function."""
        return clip_gradients(self.model.parameters(), max_norm)

    def train_step(self, idx: Tensor, targets: Tensor, **options: float) -> float:
        """Train the model for a step by your function."""
        return train_step(self.model, idx, targets, self.optimizer, **options)

    def evaluate(self, batches: list[tuple[Tensor, Tensor]]) -> float:
        """Evaluate the model by your function."""
        return evaluate(self.model, batches)


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
