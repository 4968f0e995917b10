"""A mistake is settled by its weight and by the messages of earlier tests."""

from __future__ import annotations

import pytest

from grader.author.weights import Weight, is_settled
from grader.result import ProblemResult, Status, TestResult


def result_of(ended: str) -> ProblemResult:
    """Return the result of tests worth a point each, of which F failed."""
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
        ("idea of area", "FFFFFFF", False),  # points are of the tests that use area alone
        ("idea of area", ".FFFFFFFF", True),
        ("slip", "........", False),
        ("slip", "F.......", False),  # it could lose two points more, and three are too many
        ("slip", "F........", True),
        ("slip", "FFF......", False),  # it has lost too much, and all tests say how much
    ],
)
def test_a_mistake_is_settled_once_no_other_test_can_change_it(
    weight: str, ended: str, expected: bool
) -> None:
    assert is_settled(Weight.read(weight), result_of(ended), most=10.0) is expected
