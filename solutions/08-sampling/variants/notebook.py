"""Use many small steps and changed copies, as in a notebook, without the prints."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def apply_temperature(logits, temperature):
    if temperature <= 0:
        raise ValueError("bad temperature")
    scaled = logits / temperature
    # print(scaled)
    return scaled


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError("bad k")
    if k > logits.shape[-1]:
        k = logits.shape[-1]
    top = torch.topk(logits, k, dim=-1)
    # print(top.values)
    kth_value = top.values[..., -1]
    kth_value = kth_value.unsqueeze(-1)
    mask = logits < kth_value
    result = logits.clone()
    result[mask] = float("-inf")
    return result


def keep_top_p(logits, p):
    if p <= 0:
        raise ValueError("bad p")
    if p > 1:
        raise ValueError("bad p")
    result = logits.clone()
    if p == 1:
        return result
    sorted_logits, idx = torch.sort(logits, dim=-1, descending=True)
    probs = F.softmax(sorted_logits, dim=-1)
    cum = torch.cumsum(probs, dim=-1)
    remove = cum >= p
    # keep the one that crosses p
    first = torch.zeros_like(remove[..., :1])
    remove = torch.cat([first, remove[..., :-1]], dim=-1)
    sorted_logits = sorted_logits.masked_fill(remove, float("-inf"))
    # put everything back where it was
    result = torch.empty_like(sorted_logits)
    result = result.scatter(-1, idx, sorted_logits)
    return result


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature < 0:
        raise ValueError("bad temperature")
    if temperature == 0:
        return torch.argmax(logits, dim=-1)
    x = apply_temperature(logits, temperature)
    if top_k is not None:
        x = keep_top_k(x, top_k)
    if top_p is not None:
        x = keep_top_p(x, top_p)
    probs = F.softmax(x, dim=-1)
    shape = probs.shape[:-1]
    probs = probs.reshape(int(np.prod(shape)), probs.shape[-1])
    out = torch.multinomial(probs, num_samples=1, generator=generator)
    # print(out.shape)
    return out.reshape(shape)
