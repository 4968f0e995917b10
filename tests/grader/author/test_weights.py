"""The audit checks the weight of a mistake, and stops when no other test can change the result."""

from __future__ import annotations

import pytest

from grader.author.weights import Weight, is_settled, misplaced
from grader.result import ProblemResult, Status, TestResult


def result_of(outcomes: str) -> ProblemResult:
    """Return a result of tests with one point each. In `outcomes`, F is a failed test."""
    statuses = {".": Status.PASSED, "F": Status.FAILED}
    tests = [
        TestResult(f"test_{number}", "", hidden=False, max=1.0, status=statuses[sign])
        for number, sign in enumerate(outcomes)
    ]
    return ProblemResult("01-doubling", "", tests)


@pytest.mark.parametrize(
    ("weight", "outcomes", "expected"),
    [
        ("", "..", False),
        ("", "..F", True),
        ("idea", "FFFF", False),
        ("idea", ".FFFFF", True),
        ("idea of area", "FFFFFFF", False),  # may keep at most 20 % of the points of area
        ("idea of area", ".FFFFFFFF", True),
        ("slip", "........", False),
        ("slip", "F.........", False),  # a later test may cost too many points
    ],
)
def test_a_weight_is_settled_when_no_other_test_can_change_it(
    weight: str, outcomes: str, expected: bool
) -> None:
    assert is_settled(Weight.read(weight), result_of(outcomes), most=10.0) is expected


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ("F.........", None),  # loses only a fifth of the points of area
        ("FF........", "loses 2 of the 5 points of area, but should be a slip"),
        (".....FF...", None),  # these tests use both functions
        (".....FFF..", "loses 3 of the 10 points of the problem, but should be a slip"),
    ],
)
def test_a_slip_costs_at_most_a_fifth_of_the_problem_and_of_each_function(
    outcomes: str, expected: str | None
) -> None:
    both = frozenset({"area", "perimeter"})
    asked = {f"test_{number}": both for number in range(10)}
    asked |= {f"test_{number}": frozenset({"area"}) for number in range(5)}
    assert misplaced(Weight.read("slip"), result_of(outcomes), asked) == expected
