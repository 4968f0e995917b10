"""with p = 1 a token is dropped whose probability is rounded to 0

A probability can be too small for a float. What does p = 1 ask for, whatever the sums say?

Weighs: slip.
"""

import torch


def apply_temperature(logits, temperature):
    if not temperature > 0:
        raise ValueError(f"`temperature` has to be a strictly positive float, not {temperature}")
    return logits / temperature


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError(f"`k` has to be a strictly positive integer, not {k}")
    k = min(k, logits.shape[-1])
    too_small = logits < torch.topk(logits, k)[0][..., -1, None]
    return logits.masked_fill(too_small, -float("inf"))


def keep_top_p(logits, p):
    if p <= 0 or p > 1.0:
        raise ValueError(f"`p` has to be a float above 0 and at most 1, not {p}")
    ascending, order = torch.sort(logits, descending=False)
    sums = ascending.softmax(dim=-1).cumsum(dim=-1)
    too_small = sums <= (1 - p)
    too_small[..., -1:] = False
    too_small = too_small.scatter(-1, order, too_small)
    return logits.masked_fill(too_small, -float("inf"))


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = apply_temperature(logits, temperature)
    for keep, amount in ((keep_top_k, top_k), (keep_top_p, top_p)):
        logits = logits if amount is None else keep(logits, amount)
    probabilities = logits.softmax(dim=-1).reshape(-1, logits.shape[-1])
    drawn = torch.multinomial(probabilities, 1, generator=generator)
    return drawn.reshape(logits.shape[:-1])
