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
    # TODO: refuse an impossible temperature, then divide.
    raise NotImplementedError


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k largest logits of each row, and replace the others by -inf.

    Args:
        logits: scores for the next token, shape (..., V).
        k: how many to keep, at least 1. All are kept when it is V or more.

    Returns:
        Logits of the same shape. Kept logits don't change; a tie with the k-th largest is kept,
        too.

    Raises:
        ValueError: k is less than 1.
    """
    # TODO: refuse an impossible k, then replace the logits that are too small.
    raise NotImplementedError


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the most probable tokens of each row until their probabilities add up to at least p.

    Args:
        logits: scores for the next token, shape (..., V).
        p: above 0, at most 1. With 1 all are kept.

    Returns:
        Logits of the same shape, with -inf for the other tokens. The token that crosses p is kept;
        the logits of kept tokens don't change.

    Raises:
        ValueError: p is not above 0, or is above 1.
    """
    # TODO: refuse an impossible p, then add up probabilities until p is reached.
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
        temperature: as in apply_temperature; 0 takes the largest logit, and the first of a tie.
        top_k: as in keep_top_k, after the temperature; None keeps all.
        top_p: as in keep_top_p, after top_k; None keeps all.
        generator: where all random numbers come from; None means torch's global generator.

    Returns:
        Token numbers, int64, shape (...).

    Raises:
        ValueError: temperature is below 0, or top_k or top_p is impossible.
    """
    # TODO: the largest at temperature 0; else temperature, top_k, top_p, and a draw for each row.
    raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
