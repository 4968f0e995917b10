"""Select the largest sum of logit and Gumbel noise. Drop tokens by adding -inf."""

import torch
from torch import Tensor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError("the temperature must be positive")
    return logits * (1 / temperature)


def penalty(keep: Tensor, like: Tensor) -> Tensor:
    """Return 0 where a token is kept, and -inf elsewhere."""
    return torch.zeros_like(like).masked_fill_(~keep, float("-inf"))


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    if k <= 0:
        raise ValueError("k must be positive")
    if k >= logits.shape[-1]:
        return logits.clone()
    kth = logits.detach().sort(dim=-1, descending=True)[0][..., k - 1 : k]
    return logits + penalty(logits >= kth, logits.detach())


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    if not (p > 0 and p <= 1):
        raise ValueError("p must be in (0, 1]")
    if p == 1:
        return logits.clone()
    probs = torch.softmax(logits.detach(), dim=-1)
    sorted_probs, order = torch.sort(probs, dim=-1, descending=True)
    before = torch.cumsum(sorted_probs, dim=-1) - sorted_probs
    keep = torch.zeros_like(probs, dtype=torch.bool)
    keep.scatter_(-1, order, before < p)
    return logits + penalty(keep, logits.detach())


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature < 0:
        raise ValueError("the temperature can't be negative")
    if temperature == 0:
        return torch.argmax(logits, dim=-1)
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    uniform = torch.rand(
        logits.shape, generator=generator, dtype=logits.dtype, device=logits.device
    )
    noise = -torch.log(-torch.log(uniform))
    return torch.argmax(logits + noise, dim=-1)
