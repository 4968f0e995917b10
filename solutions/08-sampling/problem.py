"""Problem 08, reference solution."""

import math

import torch
from torch import Tensor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Divide the logits by a temperature, which makes draws more or less predictable.

    Args:
        logits: scores for the next token, shape (..., V).
        temperature: above 0. Values below 1 make likely tokens more likely, and values above 1 make
            them less likely.

    Returns:
        Logits of the same shape, divided by the temperature.

    Raises:
        ValueError: temperature is not above 0.
    """
    if not temperature > 0:
        raise ValueError(f"temperature = {temperature}; it should be above 0")
    return logits / temperature


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k largest logits of each row, and replace the others by -inf.

    Args:
        logits: scores for the next token, shape (..., V).
        k: the number of logits to keep, at least 1. If k is V or more, all are kept.

    Returns:
        Logits of the same shape. Kept logits don't change. Logits that equal the k-th largest are
        kept, too.

    Raises:
        ValueError: k is less than 1.
    """
    if k < 1:
        raise ValueError(f"k = {k}; it should be 1 or more")
    smallest_kept = logits.topk(min(k, logits.shape[-1])).values[..., -1:]
    return logits.masked_fill(logits < smallest_kept, -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the most probable tokens of each row until their probabilities add up to at least p.

    Args:
        logits: scores for the next token, shape (..., V).
        p: the sum to reach, above 0 and at most 1. If p is 1, all tokens are kept.

    Returns:
        Logits of the same shape, with -inf for all other tokens. Kept logits don't change. The
        token with which the sum reaches p is kept.

    Raises:
        ValueError: p is 0 or less, or more than 1.
    """
    if not 0 < p <= 1:
        raise ValueError(f"p = {p}; it should be above 0 and at most 1")
    if p == 1:  # rounded sums may reach 1 before the last token
        return logits
    largest_first, order = logits.sort(descending=True)
    probabilities = largest_first.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities  # exactly 0 for the first: it always stays
    dropped = torch.empty_like(logits, dtype=torch.bool).scatter(-1, order, before >= p)
    return logits.masked_fill(dropped, -math.inf)


def sample(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw one token for each row of logits.

    Args:
        logits: scores for the next token, shape (..., V).
        temperature: as in apply_temperature, or 0 for the largest logit (the first of equal ones).
        top_k: as in keep_top_k, after the temperature; None keeps all.
        top_p: as in keep_top_p, after top_k; None keeps all.
        generator: the source of all random numbers; None means torch's global generator.

    Returns:
        Token numbers, int64, shape (...).

    Raises:
        ValueError: temperature is below 0, or top_k or top_p is impossible.
    """
    if temperature == 0:
        return logits.argmax(-1)
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)
    rows = logits.softmax(-1).flatten(0, -2) if logits.dim() > 1 else logits.softmax(-1)[None]
    drawn = torch.multinomial(rows, num_samples=1, generator=generator)
    return drawn.reshape(logits.shape[:-1])
