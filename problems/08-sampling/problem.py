"""Problem 08: sampling, from a model's scores for the next token to a token.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch  # noqa: F401  (you will need it)
from torch import Tensor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Make the choice bolder or calmer.

    Args:
        logits: scores for the next token, shape (..., V).
        temperature: above 0. Below 1 the likely tokens become likelier, above 1 all come closer.

    Returns:
        Logits of the same shape, divided by the temperature.

    Raises:
        ValueError: temperature is not above 0.
    """
    # TODO: refuse an impossible temperature, then divide.
    raise NotImplementedError


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k largest logits of each row, and put -inf in place of the others.

    Args:
        logits: scores for the next token, shape (..., V).
        k: how many to keep, at least 1. All are kept when it is V or more.

    Returns:
        Logits of the same shape. What is kept stays as it was; what ties with the k-th largest is
        kept, too.

    Raises:
        ValueError: k is less than 1.
    """
    # TODO: refuse an impossible k, then find out what is too small to stay.
    raise NotImplementedError


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Keep the most probable tokens of each row that together reach p, and put -inf for the others.

    Args:
        logits: scores for the next token, shape (..., V).
        p: above 0, at most 1. With 1 all are kept.

    Returns:
        Logits of the same shape. Of the tokens from the most probable on, those are kept as they
        were whose probabilities it takes to reach p, with the one by which the sum gets there.

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
        temperature: as in apply_temperature; 0 takes the largest logit, the first one of a tie.
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
