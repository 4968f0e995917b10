"""Many calls of one function."""

from __future__ import annotations

import pytest
import torch

from grader.errors import Mismatch
from grader.run.calls import answers


def test_a_call_that_writes_over_an_earlier_result_is_a_mismatch() -> None:
    buffer = torch.zeros(2)
    with pytest.raises(Mismatch, match="A call of fill_ changed the result of an earlier call"):
        answers(buffer.fill_, [(1,), (2,)])
