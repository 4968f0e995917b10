"""The audit's gates find tests that depend on the tested file or accept damaged values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from grader.author.gates import CLAIMS_GIVE, _wrong_values, gates_of
from grader.course import Course, own_course

TESTS = '''"""Tests."""

import pytest
import torch

from grader.run.checks import check, check_form, check_that, require
from shared import oracles


@pytest.mark.points(1)
def test_it(problem, rng):
    """It works"""
    x = rng.normal(3)
    {body}
'''
ORACLES = """
def doubled(x):
    return 2 * x

def finite(value, call):
    assert value.isfinite().all()
"""


@pytest.fixture
def findings_of(tmp_path: Path, new_course: Callable[[Path], Course]) -> Callable[[str], list[str]]:
    """Return a function that receives the body of a test and returns the gates' findings."""
    course = new_course(tmp_path / "course")
    (problem,) = course.problems()
    oracles = course.root / "problems/shared/oracles/__init__.py"
    oracles.write_text(ORACLES, encoding="utf-8")
    variants = course.solution(problem).parent / "variants"
    variants.mkdir()
    (variants / "off.py").write_text("def double(x):\n    return 3 * x\n", encoding="utf-8")

    def findings(body: str) -> list[str]:
        problem.test_file.write_text(TESTS.format(body=body), encoding="utf-8")
        return gates_of(problem, course.root).findings

    return findings


@pytest.mark.parametrize(
    ("body", "share"),
    [
        ('check_form(problem.double(x), x, "f")', "100%"),
        ('require(True, "f"); check(problem.double(x), oracles.doubled(x), "f")', "50%"),
    ],
)
def test_too_many_points_for_claims_are_a_finding(
    findings_of: Callable[[str], list[str]], body: str, share: str
) -> None:
    (finding,) = findings_of(body)[-1:]
    assert finding.endswith(f"checks without a compared value give {share} of points")


def test_a_good_test_has_no_findings(findings_of: Callable[[str], list[str]]) -> None:
    assert findings_of('check(problem.double(x), oracles.doubled(x), "double(x)")') == []


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        ('check(problem.double(x), torch.ones(3), "f")', "the test contains the right answer"),
        ("problem.double(x)", "makes no check"),
        ('check_that(problem.double(x), oracles.finite, "f")', "a wrong value is accepted"),
        (
            'check(problem.double(2 * x), oracles.doubled(problem.double(x)), "f")',
            "with variant off the status is passed at home, but failed in grading",
        ),
    ],
)
def test_each_gate_has_a_finding(
    findings_of: Callable[[str], list[str]], body: str, finding: str
) -> None:
    (only,) = findings_of(body)
    assert only.startswith("01-doubling: test_it: ")
    assert finding in only


@pytest.mark.parametrize(
    "value",
    [True, 3, 0.0, "x", torch.zeros(2), torch.tensor(float("nan")), torch.tensor([True]),
     torch.tensor([1]), torch.zeros(2).numpy(), {"a": 1}, [1], (1,)],
    ids=repr,
)  # fmt: skip
def test_a_damaged_value_is_different(value: object) -> None:
    (damaged,) = _wrong_values(value)
    assert type(damaged) is type(value)
    assert str(damaged) != str(value)


@pytest.mark.slow
@pytest.mark.parametrize("problem", own_course().problems(), ids=lambda problem: problem.id)
def test_the_tests_of_the_course_pass_the_gates(problem) -> None:
    gates = gates_of(problem, own_course().root)
    assert gates.findings == []
    assert gates.by_claims <= CLAIMS_GIVE
