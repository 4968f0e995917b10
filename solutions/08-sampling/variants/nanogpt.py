"""Follow nanoGPT's generate, with the filters as separate functions."""

import torch
import torch.nn.functional as F


def apply_temperature(logits, temperature):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    return logits / temperature


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError("k must be positive")
    logits = logits.clone()
    v, _ = torch.topk(logits, min(k, logits.size(-1)))
    logits[logits < v[..., [-1]]] = -float("Inf")
    return logits


def keep_top_p(logits, p):
    if p <= 0 or p > 1:
        raise ValueError("p must be in (0, 1]")
    if p == 1:
        return logits
    probs = F.softmax(logits, dim=-1)
    probs_sort, probs_idx = torch.sort(probs, dim=-1, descending=True)
    probs_sum = torch.cumsum(probs_sort, dim=-1)
    mask = probs_sum - probs_sort > p
    mask = torch.zeros_like(mask).scatter(-1, probs_idx, mask)
    return logits.masked_fill(mask, -float("Inf"))


@torch.no_grad()
def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        _, idx_next = torch.topk(logits, k=1, dim=-1)
        # the first of equal logits
        idx_next = (logits == logits.gather(-1, idx_next)).int().argmax(dim=-1)
        return idx_next
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    probs = F.softmax(logits, dim=-1)
    idx_next = torch.multinomial(
        probs.flatten(0, -2) if probs.dim() > 2 else probs, num_samples=1, generator=generator
    )
    return idx_next.view(logits.shape[:-1])
