import math

import torch
from torch import Tensor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    if not temperature > 0:
        raise ValueError(f"the temperature has to be above 0, not {temperature}")
    return logits / temperature


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    if k < 1:
        raise ValueError(f"at least one token is kept, not {k}")
    smallest_kept = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < smallest_kept, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    if not 0 < p <= 1:
        raise ValueError(f"p is a probability above 0, not {p}")
    if p == 1:
        return logits.clone()
    ordered, tokens = logits.softmax(-1).sort(descending=True)
    # Those before a token: while they are below p it is still needed, the one that crosses too.
    before = ordered.cumsum(-1) - ordered
    out = torch.zeros_like(tokens, dtype=torch.bool).scatter(-1, tokens, before >= p)
    return logits.masked_fill(out, -math.inf)


def sample(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    rows = logits.softmax(-1).reshape(-1, logits.shape[-1])
    return rows.multinomial(1, generator=generator).reshape(logits.shape[:-1])
