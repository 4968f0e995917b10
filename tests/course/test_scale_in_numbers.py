"""The numbers of problem 03's pages about variances and derivatives."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from tests.course.pages import READMES

README = READMES["03"]


def test_the_derivatives_of_a_weight() -> None:
    weights, scores = torch.tensor([0.7311, 0.2689]), torch.tensor([2.0, 1])
    slopes = torch.func.jacrev(lambda s: s.softmax(-1))(scores)
    assert torch.allclose(scores.softmax(-1), weights, atol=1e-4)
    assert f"For a weight of 0.7311 that is {slopes[0, 0]:.4f}." in README
    assert f"With weights 0.7311 and 0.2689 that is {slopes[0, 1]:.4f}" in README
    assert slopes.sum(-1).abs().max() < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("n_embd", [64, 1024])
def test_scaled_scores_of_new_layers_have_a_variance_of_a_ninth(n_embd: int) -> None:
    torch.manual_seed(0)
    found = []
    for _ in range(20):
        query, key = nn.Linear(n_embd, n_embd), nn.Linear(n_embd, n_embd)
        x = torch.randn(200, n_embd)
        with torch.no_grad():
            scores = (query(x) * key(x.roll(1, 0))).sum(-1) / n_embd**0.5
        found.append(scores.var().item())
    mean = sum(found) / len(found)
    said = re.search(r"the scaled scores: ([\d.]+), for \$n\$ = 64 as for 1024", README)
    assert said
    assert mean == pytest.approx(float(said[1]), rel=0.1)
    assert mean == pytest.approx(1 / 9, rel=0.1)


def test_evenly_drawn_entries_have_seven_parts_of_144() -> None:
    torch.manual_seed(0)
    q, k = torch.rand(2, 200_000, 16)
    assert (q * k).sum(-1).var().item() == pytest.approx(7 * 16 / 144, rel=0.05)
    assert r"$7 d_k / 144$" in README
