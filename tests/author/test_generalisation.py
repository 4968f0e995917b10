"""Faults put into right solutions: each change does what its name says, and names are judged."""

from __future__ import annotations

import pytest
import torch

from grader.author.audit import run_audit
from grader.author.generalisation import generalise
from grader.author.transformations import KEEPING, TRANSFORMATIONS
from grader.course import Course
from tests.catalogue import write_mistakes

SOURCE = """
import math
import torch

def attention(q, k, v):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    powers = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return weights @ v
"""

CHANGED = {
    "not scaled": "scores = q @ k.mT\n",
    "maximum not subtracted": "powers = scores.exp()",
    "keepdim forgotten": "scores.amax(dim=-1)",
    "not transposed": "scores = q @ k / math.sqrt",
    "detached": "return (weights @ v).detach()",
}


def mutants(name: str) -> list[str]:
    (found,) = [each for each in (*TRANSFORMATIONS, *KEEPING) if each.name == name]
    return list(found.mutants(SOURCE))


@pytest.mark.parametrize("name", CHANGED)
def test_a_fault_is_put_where_it_fits(name: str) -> None:
    assert any(CHANGED[name] in mutant for mutant in mutants(name))


def test_a_fault_is_put_into_each_place_and_into_all() -> None:
    kept = [mutant.count("keepdim=True") for mutant in mutants("keepdim forgotten")]
    assert sorted(kept) == [0, 1, 1]


def test_what_does_not_fit_changes_nothing() -> None:
    assert mutants("no projection") == []


def attention_of(source: str) -> torch.Tensor:
    names: dict[str, object] = {}
    exec(source, names)
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 2, 4, 5, generator=generator, dtype=torch.float64)
    result = names["attention"](q, k, v)  # type: ignore[operator]
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize("change", [each.name for each in KEEPING])
def test_what_keeps_a_solution_right_keeps_its_numbers(change: str) -> None:
    found = mutants(change)
    assert found
    for mutant in found:
        assert torch.allclose(attention_of(mutant), attention_of(SOURCE), atol=1e-12)


@pytest.mark.slow
def test_names_are_counted_and_judged(small_course: Course) -> None:
    solutions = small_course.root / "solutions/01-doubling"
    (solutions / "variants").mkdir(exist_ok=True)
    (solutions / "variants/minus.py").write_text("def double(x):\n    return 3 * x - x.amax()\n")
    when, line = "The maximum is not subtracted", "    return x + x"
    write_mistakes(solutions, {"triples": (when, line, "    return 3 * x")})
    run_audit(small_course, small_course.problems(), 1, write_fingerprints=True)
    found = generalise(small_course, small_course.problems(), 1)
    judged = {mutant.fault: mutant for mutant in found.mutants}
    assert judged["maximum not subtracted"].is_right
    assert {mutant.style for mutant in found.mutants} == {"minus"}
    assert [m.fault for m in found.mutants if m.told] == ["maximum not subtracted"]
    assert found.named_though_right == []
    assert "1 of these rightly (100 %)" in found.summary()
