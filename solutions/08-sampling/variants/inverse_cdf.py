"""Draw a uniform number per row, and find it in the running sum of the probabilities."""

import math

import torch


def apply_temperature(logits, temperature):
    if temperature > 0:
        return logits / temperature
    raise ValueError("temperature")


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError("k")
    V = logits.shape[-1]
    if k >= V:
        return logits
    kth = torch.kthvalue(logits, V - k + 1, dim=-1, keepdim=True).values
    out = logits.clone()
    out[logits < kth] = -math.inf
    return out


def keep_top_p(logits, p):
    if p > 1 or p <= 0:
        raise ValueError("p")
    if p >= 1:
        return logits
    probs = logits.softmax(dim=-1)
    order = torch.argsort(probs, dim=-1, descending=True)
    running = torch.cumsum(torch.gather(probs, -1, order), dim=-1)
    # the number of tokens until the sum is p or more
    needed = (running < p).sum(dim=-1, keepdim=True) + 1
    rank = torch.argsort(order, dim=-1)
    out = logits.clone()
    out[rank >= needed] = -math.inf
    return out


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature < 0:
        raise ValueError("temperature")
    if temperature == 0:
        return logits.max(dim=-1).indices
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    cdf = logits.detach().softmax(dim=-1).cumsum(dim=-1)
    u = torch.rand(*cdf.shape[:-1], 1, generator=generator, dtype=cdf.dtype)
    drawn = torch.searchsorted(cdf, u * cdf[..., -1:], right=True)
    last = (cdf < cdf[..., -1:]).sum(dim=-1, keepdim=True)  # the last possible token
    return torch.minimum(drawn, last).squeeze(-1)
