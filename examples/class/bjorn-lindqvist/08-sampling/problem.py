import torch
from torch import Tensor


def apply_temperature(logits, temperature):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    return logits / temperature


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError("k must be at least 1")
    k = min(k, logits.shape[-1])
    kth = logits.topk(k, dim=-1).values[..., -1, None]
    return torch.where(logits >= kth, logits, -float("inf"))


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    # TODO: refuse an impossible p, then add up probabilities until p is reached.
    raise NotImplementedError


def sample(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    # TODO: the largest at temperature 0; else temperature, top_k, top_p, and a draw for each row.
    raise NotImplementedError
