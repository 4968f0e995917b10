"""Draw with torch.distributions. Its draws use the generator's state as the global state."""

import torch
from torch.distributions import Categorical

NEG_INF = float("-inf")


def apply_temperature(logits, temperature):
    if not temperature > 0:
        raise ValueError("Temperature has to be positive.")
    return logits / temperature


def keep_top_k(logits, k):
    if not k >= 1:
        raise ValueError("k has to be at least 1.")
    k = min(k, logits.size(-1))
    smallest = torch.topk(logits, k, dim=-1).values.min(dim=-1, keepdim=True).values
    return logits.masked_fill(logits.lt(smallest), NEG_INF)


def keep_top_p(logits, p):
    if not 0 < p <= 1:
        raise ValueError("p has to be in (0, 1].")
    # in ascending order, drop tokens while their sum is at most 1 - p
    ascending, order = torch.sort(logits, dim=-1, descending=False)
    from_below = ascending.softmax(dim=-1).cumsum(dim=-1)
    drop = from_below <= 1 - p
    drop[..., -1] = False
    if p == 1:
        drop = torch.zeros_like(drop)
    return logits.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), NEG_INF)


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = apply_temperature(logits, temperature)
    logits = logits if top_k is None else keep_top_k(logits, top_k)
    logits = logits if top_p is None else keep_top_p(logits, top_p)
    distribution = Categorical(logits=logits)
    if generator is None:
        return distribution.sample()
    seed = int(torch.randint(2**62, (1,), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return distribution.sample()
