"""Torch's compiler is loaded for the files that may want it, and for no others."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from grader.course import Course
from grader.isolation.compiler import may_want_compiler

WANT = [
    "torch.empty(2, device='meta')",
    "from torch import optim",
    "torch.optim.SGD(model.parameters())",
    "torch.compile(f)",
    "torch.func.vmap(f)",
    "from torch.utils.checkpoint import checkpoint",
    "@torch.jit.script",
    "getattr(torch, name)",
]
DO_NOT = [
    "import torch.nn.functional as F",
    "F.softmax(scores, dim=-1)",
    "# no optimizer touches it",
    "raise ValueError(f'{n_embd} is not divisible by {n_head}')",
    "self.register_buffer('mask', torch.ones(n, n).tril().bool())",
]


@pytest.mark.parametrize("line", WANT)
def test_these_may(line: str) -> None:
    assert may_want_compiler(line.encode())


@pytest.mark.parametrize("line", DO_NOT)
def test_these_do_not(line: str) -> None:
    assert not may_want_compiler(line.encode())


def test_no_reference_does(course: Course) -> None:
    """Otherwise each run would load it."""
    for problem in course.problems():
        assert not may_want_compiler(course.solution(problem).read_bytes()), problem.id


FORBIDDEN = ("softmax", "scaled_dot_product_attention", "MultiheadAttention")


def test_a_worker_has_it_where_it_is_wanted(opened: Any) -> None:
    """It could not load it, as functions that are forbidden here are in it."""
    problem = opened(
        """
        import torch
        def trained(x):
            x = torch.nn.Parameter(x)
            optimizer = torch.optim.SGD([x], lr=0.5)
            (3 * x).sum().backward()
            optimizer.step()
            return x.detach()
        def shape():
            return list(torch.ones(2, 3, device="meta", dtype=torch.bool).tril().shape)
        """,
        FORBIDDEN,
    )
    assert torch.equal(problem.trained(torch.zeros(2)), torch.full((2,), -1.5))
    assert problem.shape() == [2, 3]


@pytest.mark.parametrize("forbidden", [(), FORBIDDEN], ids=["nothing", "attention"])
def test_and_not_where_it_is_not(opened: Any, forbidden: tuple[str, ...]) -> None:
    source = "import sys as s\ndef has(): return 'torch._dyn' + 'amo' in s.modules"
    assert not opened(source, forbidden).has()
    assert opened(f"# {WANT[0]}\n{source}", forbidden).has()
