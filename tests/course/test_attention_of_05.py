"""A student's attention from problem 05 can replace the attention that 06 and 07 provide."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from grader.code.loading import load_module
from grader.course import own_course
from grader.result import ProblemResult
from tests.catalogue import reference

OWN = reference("05")
GIVEN = re.compile(r"^class CausalSelfAttention\b.*?(?=^\S)", re.MULTILINE | re.DOTALL)


def with_attention_of_05(source: str) -> str:
    """Return a correct file in which the class of 05 replaces the provided class."""
    own = OWN[OWN.index("\ndef ") :] + "\n\nCausalSelfAttention = MultiHeadAttention\n\n\n"
    imports = "import math\n\nimport torch\nfrom torch import Tensor, nn\n"
    changed, places = GIVEN.subn(lambda _: imports + own, source)
    assert places == 1
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("number", ["06", "07"])
def test_attention_of_05_earns_all_points(
    at_home: Callable[..., ProblemResult], number: str
) -> None:
    result = at_home(number, with_attention_of_05(reference(number)))
    assert [test.message for test in result.tests if test.message] == []
    assert result.points == result.max


@pytest.mark.parametrize("number", ["06", "07"])
def test_the_provided_attention_requires_arguments_by_name(number: str) -> None:
    """Passed by position, `bias=False` would be read as `causal=False`."""
    (problem,) = own_course().select([number])
    attention = load_module(problem.original, f"given_{number}").CausalSelfAttention
    with pytest.raises(TypeError, match="positional"):
        attention(8, 2, 0.0, False)
    assert attention(n_embd=8, n_head=2, dropout=0.1, bias=False).causal
