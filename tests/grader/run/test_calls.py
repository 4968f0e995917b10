"""Many calls of one function."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from grader.errors import Mismatch
from grader.run.calls import answers


def draw(size: int, *, plus: float = 0.0) -> Tensor:
    return torch.rand(size) + plus


def test_each_call_gets_its_arguments_and_its_seed() -> None:
    found = answers(draw, [(2,), {"size": 2, "plus": 1.0}, (2,)], seeds=[1, 1, 2])
    assert torch.equal(found[0] + 1, found[1])
    assert not torch.equal(found[0], found[2])
    torch.manual_seed(1)
    assert torch.equal(answers(draw, [(2,), (2,)])[0], found[0])


def test_a_call_that_writes_over_an_earlier_result_is_a_mismatch() -> None:
    buffer = torch.zeros(2)
    with pytest.raises(Mismatch, match="A call of fill_ changed the result of an earlier call"):
        answers(buffer.fill_, [(1,), (2,)])
