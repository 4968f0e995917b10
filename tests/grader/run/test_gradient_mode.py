"""In every problem, code that leaves gradients switched off is wrong."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grader.result import ProblemResult
from tests.catalogue import reference

# Each wrapped function leaves gradients switched off if no argument requires a gradient.
LEAVES = """

def _leaving(function):
    def left(*args, **kwargs):
        found = function(*args, **kwargs)
        given = [*args, *kwargs.values()]
        torch.set_grad_enabled(any(getattr(each, "requires_grad", False) for each in given))
        return found
    return left
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "function"),
    [
        ("01", "dot_product_similarity"),
        ("01", "softmax"),
        ("02", "SimpleAttention.forward"),
        ("03", "scaled_dot_product_attention"),
        ("03", "dot_product_variance"),
        ("04", "CausalAttention.forward"),
        ("05", "MultiHeadAttention.forward"),
        ("06", "gelu"),
        ("07", "get_batch"),
        ("07", "GPT.generate"),
        ("08", "keep_top_k"),
        ("08", "sample"),
        ("09", "CachedGPT.generate"),
    ],
)
def test_gradients_left_switched_off_are_reported(
    at_home: Callable[..., ProblemResult], number: str, function: str
) -> None:
    """At least one failing test reports that gradients are switched off."""

    def is_reported(result: ProblemResult) -> bool:
        return any("leaves gradients switched off" in test.message for test in result.tests)

    text = f"{reference(number)}{LEAVES}\n\n{function} = _leaving({function})\n"
    assert is_reported(at_home(number, text, until=is_reported))
