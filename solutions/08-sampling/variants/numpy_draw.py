"""Draw with NumPy, from a seed that torch's generator draws."""

import numpy as np
import torch


def apply_temperature(logits, temperature):
    if temperature <= 0:
        raise ValueError("temperature should be above 0")
    return logits / temperature


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError("k should be at least 1")
    descending = np.sort(logits.detach().numpy(), axis=-1)[..., ::-1]
    threshold = torch.from_numpy(descending[..., min(k, descending.shape[-1]) - 1].copy())
    return torch.where(logits >= threshold.unsqueeze(-1), logits, -np.inf)


def keep_top_p(logits, p):
    if not (0 < p <= 1):
        raise ValueError("p should be in (0, 1]")
    if p == 1:
        return logits
    values = logits.detach().numpy().astype(np.float64)
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    probabilities = powers / powers.sum(axis=-1, keepdims=True)
    order = np.argsort(-probabilities, axis=-1)
    descending = np.take_along_axis(probabilities, order, axis=-1)
    keep_sorted = np.cumsum(descending, axis=-1) - descending < p
    keep = np.empty_like(keep_sorted)
    np.put_along_axis(keep, order, keep_sorted, axis=-1)
    return torch.where(torch.from_numpy(keep), logits, -np.inf)


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature < 0:
        raise ValueError("temperature should not be below 0")
    if temperature == 0:
        return torch.from_numpy(np.asarray(np.argmax(logits.detach().numpy(), axis=-1)))
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    seed = torch.randint(0, 2**63 - 1, (), generator=generator).item()
    noise = np.random.default_rng(seed).gumbel(size=tuple(logits.shape))
    return torch.as_tensor(np.argmax(logits.detach().numpy() + noise, axis=-1), dtype=torch.int64)
