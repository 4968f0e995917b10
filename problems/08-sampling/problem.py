"""Problem 08: sampling, from a model's scores for the next token to a token.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch  # noqa: F401  (you will need it)
from torch import Tensor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Divide the logits by a temperature, which makes draws more or less predictable.

    Args:
        logits: scores for the next token, shape (..., V).
        temperature: above 0. Values below 1 make likely tokens more likely, and values above 1 make
            them less likely.

    Returns:
        Logits of the same shape.

    Raises:
        ValueError: temperature is not above 0.
    """
    # TODO: raise ValueError for an impossible temperature, then divide.
    raise NotImplementedError


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
    # TODO: raise ValueError for an impossible k, then replace the logits that are too small.
    raise NotImplementedError


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
    # TODO: raise ValueError for an impossible p, then add up probabilities until p is reached.
    raise NotImplementedError


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
    # TODO: the largest at temperature 0; else temperature, top_k, top_p, and a draw for each row.
    raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
