"""Tests of problem 01. Run them with `uv run pytest` in this folder."""

import numpy as np
import pytest

from grader.run.checks import check, require
from shared.oracles import unit_rows as oracles


@pytest.mark.points(1)
def test_worked_example(problem):
    """unit_rows gives the numbers of the worked example, also for a row of zeros"""
    x = np.array([[3.0, 4.0], [0.0, -2.0], [0.0, 0.0]])
    check(problem.unit_rows(x), oracles.EXAMPLE, "unit_rows([[3, 4], [0, -2], [0, 0]])")


@pytest.mark.points(2)
@pytest.mark.parametrize("shape", [(4,), (5, 3), (2, 3, 4)])
def test_rows_by_hand(problem, rng, shape):
    """unit_rows divides each row by its norm, for any number of axes"""
    x = rng.normal(*shape)
    expected = oracles.unit_rows(x)
    check(problem.unit_rows(x), expected, f"unit_rows(x) for x of shape {shape}")


@pytest.mark.points(1)
def test_large_and_small(problem):
    """unit_rows is right for rows of 1e200 and of 1e-200"""
    x = np.array([[3.0, 4.0, 0.0], [1.0, -2.0, 2.0], [-6.0, 3.0, 2.0]])
    x *= np.array([[1e200], [1.0], [1e-200]])
    expected = oracles.unit_rows(x)
    check(problem.unit_rows(x), expected, "unit_rows(x) for rows of 1e200, 1, and 1e-200")


@pytest.mark.points(1)
def test_float32(problem, rng):
    """unit_rows keeps float32"""
    x = rng.normal(4, 3, dtype=np.float32)
    expected = oracles.unit_rows(x)
    check(problem.unit_rows(x), expected, "unit_rows(x) for float32", all_digits=True)


@pytest.mark.points(1)
def test_argument_is_left_alone(problem, rng):
    """unit_rows does not change its argument"""
    x = rng.normal(3, 2)
    before = x.copy()
    result = problem.unit_rows(x)
    require(np.array_equal(x, before), "unit_rows(x)\nYour code changed x.")
    # Code that does nothing does not change x, either.
    check(result, oracles.unit_rows(before), "unit_rows(x)")


# --- hidden tests ---


@pytest.mark.points(2)
@pytest.mark.parametrize("shape", [(7, 5), (3, 1), (2, 2, 3, 6)])
def test_hidden_rows(problem, solution, rng, shape):
    """unit_rows is right for other rows"""
    x = 3 * rng.normal(*shape)
    expected = solution.unit_rows(x.copy())
    check(problem.unit_rows(x), expected, f"unit_rows(x) for shape {shape}")


@pytest.mark.points(2)
def test_hidden_sizes(problem, solution, rng):
    """unit_rows is right for rows of all sizes at once, and for zeros"""
    x = rng.normal(6, 4) * np.array([[1e250], [1e160], [1.0], [1e-170], [1e-250], [0.0]])
    expected = solution.unit_rows(x.copy())
    check(problem.unit_rows(x), expected, "unit_rows(x) for all sizes")
