"""keep_top_p goes on with what it found in another call

Other logits of the same shape may come next. What does your function keep from call to call?
"""

import torch

_dropped = {}


def apply_temperature(logits, temperature):
    if temperature > 0:
        return logits / temperature
    raise ValueError("the temperature has to be positive")


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError("k has to be positive")
    kth = logits.sort(descending=True).values[..., min(k, logits.shape[-1]) - 1].unsqueeze(-1)
    return torch.where(logits < kth, -torch.inf, logits)


def keep_top_p(logits, p):
    if not 0 < p <= 1:
        raise ValueError("p has to be above 0 and at most 1")
    if p == 1:
        return logits
    key = (*logits.shape, p)
    if key not in _dropped:
        ordered, order = logits.detach().sort(descending=True)
        probabilities = ordered.softmax(-1)
        late = probabilities.cumsum(-1) - probabilities >= p
        _dropped[key] = torch.zeros_like(late).scatter(-1, order, late)
    return torch.where(_dropped[key], -torch.inf, logits)


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature == 0:
        return logits.argmax(-1)
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    rows = logits.softmax(-1).reshape(-1, logits.shape[-1])
    return torch.multinomial(rows, 1, generator=generator).reshape(logits.shape[:-1])
