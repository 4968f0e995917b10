"""Use short code and short names."""

import torch


def apply_temperature(logits, temperature):
    if temperature <= 0:
        raise ValueError
    return logits / temperature


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError
    v, _ = torch.topk(logits, min(k, logits.size(-1)))
    return torch.where(logits < v[..., [-1]], -float("inf"), logits)


def keep_top_p(logits, p):
    if p <= 0 or p > 1:
        raise ValueError
    if p == 1:
        return logits
    s, i = logits.sort(-1, True)
    c = s.softmax(-1).cumsum(-1)
    m = c.roll(1, -1) >= p
    m[..., 0] = False
    return logits.masked_fill(m.gather(-1, i.argsort(-1)), -float("inf"))


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    x = apply_temperature(logits, temperature)
    if top_k is not None:
        x = keep_top_k(x, top_k)
    if top_p is not None:
        x = keep_top_p(x, top_p)
    p = x.softmax(-1)
    return torch.multinomial(p.view(-1, p.size(-1)), 1, generator=generator).view(p.shape[:-1])
