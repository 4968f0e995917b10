"""Find the smallest logit to keep, and drop all smaller logits. Use typed helpers."""

from typing import Optional

import torch


def require(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def at_least(logits: torch.Tensor, smallest: torch.Tensor) -> torch.Tensor:
    return torch.where(logits >= smallest, logits, torch.full_like(logits, float("-inf")))


def apply_temperature(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    require(temperature > 0, "temperature must be above 0")
    return logits.div(temperature)


def keep_top_k(logits: torch.Tensor, k: int) -> torch.Tensor:
    require(k >= 1, "k must be 1 or more")
    descending = torch.sort(logits, dim=-1, descending=True).values
    last = min(k, logits.size(-1)) - 1
    return at_least(logits, descending.narrow(-1, last, 1))


def keep_top_p(logits: torch.Tensor, p: float) -> torch.Tensor:
    require(0 < p <= 1, "p must be in (0, 1]")
    if p == 1:
        return logits
    descending = torch.sort(logits, dim=-1, descending=True).values
    sums = torch.softmax(descending.double(), dim=-1).cumsum(dim=-1)
    number = (sums < p).long().sum(dim=-1, keepdim=True).clamp(max=logits.size(-1) - 1)
    return at_least(logits, torch.gather(descending, -1, number))


def sample(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: Optional[int] = None,
    top_p: Optional[float] = None,
    generator: Optional[torch.Generator] = None,
) -> torch.Tensor:
    require(temperature >= 0, "temperature must not be below 0")
    with torch.no_grad():
        if temperature == 0:
            is_largest = logits == logits.max(dim=-1, keepdim=True).values
            return is_largest.to(torch.uint8).argmax(dim=-1)
        scaled = apply_temperature(logits, temperature)
        if top_k is not None:
            scaled = keep_top_k(scaled, top_k)
        if top_p is not None:
            scaled = keep_top_p(scaled, top_p)
        probabilities = torch.softmax(scaled, dim=-1)
        rows = probabilities.reshape(-1, probabilities.size(-1))
        tokens = torch.multinomial(rows, num_samples=1, generator=generator)
        return tokens.squeeze(-1).reshape(logits.shape[:-1])
