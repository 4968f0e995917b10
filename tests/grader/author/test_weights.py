"""The weight of a mistake and the results of earlier tests decide which tests it still runs."""

from __future__ import annotations

import pytest

from grader.author.weights import Weight, is_settled, misplaced
from grader.result import ProblemResult, Status, TestResult


def result_of(ended: str) -> ProblemResult:
    """Return a result of tests with one point each. In `ended`, F is a failed test."""
    ends = {".": Status.PASSED, "F": Status.FAILED}
    tests = [
        TestResult(f"test_{number}", "", hidden=False, max=1.0, status=ends[sign])
        for number, sign in enumerate(ended)
    ]
    return ProblemResult("01-doubling", "", tests)


@pytest.mark.parametrize(
    ("weight", "ended", "expected"),
    [
        ("", "..", False),
        ("", "..F", True),
        ("idea", "FFFF", False),
        ("idea", ".FFFFF", True),
        ("idea of area", "FFFFFFF", False),  # only tests of area alone count
        ("idea of area", ".FFFFFFFF", True),
        ("slip", "........", False),
        ("slip", "F.........", False),  # another test may cost too many points
    ],
)
def test_a_mistake_is_decided_when_no_other_test_can_change_it(
    weight: str, ended: str, expected: bool
) -> None:
    assert is_settled(Weight.read(weight), result_of(ended), most=10.0) is expected


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        ("F.........", None),  # a fifth of the points of area
        ("FF........", "loses 2 of the 5 points of area, but should be a slip"),
        (".....FF...", None),  # these tests use two functions
        (".....FFF..", "loses 3 of the 10 points of the problem, but should be a slip"),
    ],
)
def test_a_slip_costs_a_fifth_of_the_problem_and_of_a_function(
    ended: str, expected: str | None
) -> None:
    both = frozenset({"area", "perimeter"})
    asked = {f"test_{number}": both for number in range(10)}
    asked |= {f"test_{number}": frozenset({"area"}) for number in range(5)}
    assert misplaced(Weight.read("slip"), result_of(ended), asked) == expected
