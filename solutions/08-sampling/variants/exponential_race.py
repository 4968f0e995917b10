"""Divide probabilities by exponential noise, as gpt-fast does, and select the largest."""

import torch


def apply_temperature(logits, temperature):
    if temperature <= 0.0:
        raise ValueError(f"temperature must be > 0, got {temperature}")
    return torch.div(logits, temperature)


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError(f"k must be >= 1, got {k}")
    values, _ = torch.topk(logits, min(k, logits.size(-1)), dim=-1)
    pivot = values.select(-1, -1).unsqueeze(-1)
    return torch.where(logits < pivot, -float("Inf"), logits)


def keep_top_p(logits, p):
    if p <= 0 or p > 1:
        raise ValueError(f"p must be in (0, 1], got {p}")
    if p == 1:
        return logits
    sorted_logits, sorted_indices = torch.sort(logits, descending=True, dim=-1)
    cumulative_probs = torch.cumsum(torch.softmax(sorted_logits, dim=-1), dim=-1)
    sorted_indices_to_remove = cumulative_probs > p
    # Shift to the right, so that the first token above the threshold stays
    sorted_indices_to_remove[..., 1:] = sorted_indices_to_remove[..., :-1].clone()
    sorted_indices_to_remove[..., 0] = False
    indices_to_remove = sorted_indices_to_remove.scatter(
        -1, sorted_indices, sorted_indices_to_remove
    )
    return logits.masked_fill(indices_to_remove, -float("Inf"))


def multinomial_sample_one(probs, generator):
    q = torch.empty_like(probs).exponential_(1, generator=generator)
    return torch.argmax(probs / q, dim=-1).to(torch.int64)


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature < 0:
        raise ValueError("temperature must not be negative")
    if temperature == 0:
        return torch.argmax(logits, dim=-1)
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    probs = torch.nn.functional.softmax(logits, dim=-1)
    return multinomial_sample_one(probs.detach(), generator)
