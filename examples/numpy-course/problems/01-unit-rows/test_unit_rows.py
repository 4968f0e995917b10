"""Tests of problem 01. Run them with `uv run pytest` in this folder."""

import math

import numpy as np
import pytest

from grader.run.compare import check, require


def unit_row_by_hand(row):
    """A row divided by its norm, which `math.hypot` takes without overflow."""
    norm = math.hypot(*row) or 1.0
    return [entry / norm for entry in row]


def by_hand(x):
    """The same for each row of an array."""
    rows = [unit_row_by_hand(row) for row in x.reshape(-1, x.shape[-1]).tolist()]
    return np.array(rows, dtype=x.dtype).reshape(x.shape)


@pytest.mark.points(1)
def test_worked_example(problem):
    """unit_rows gives the numbers of the worked example, a row of zeros among them"""
    x = np.array([[3.0, 4.0], [0.0, -2.0], [0.0, 0.0]])
    expected = np.array([[0.6, 0.8], [0.0, -1.0], [0.0, 0.0]])
    check(problem.unit_rows(x), expected, "unit_rows([[3, 4], [0, -2], [0, 0]])")


@pytest.mark.points(2)
@pytest.mark.parametrize("shape", [(4,), (5, 3), (2, 3, 4)])
def test_rows_by_hand(problem, rng, shape):
    """unit_rows divides each row by its norm, for any number of axes"""
    x = rng.normal(*shape)
    check(problem.unit_rows(x.copy()), by_hand(x), f"unit_rows(x) for x of shape {shape}")


@pytest.mark.points(1)
def test_large_and_small(problem):
    """unit_rows is right for rows of 1e200 and of 1e-200"""
    x = np.array([[3.0, 4.0, 0.0], [1.0, -2.0, 2.0], [-6.0, 3.0, 2.0]])
    x *= np.array([[1e200], [1.0], [1e-200]])
    check(problem.unit_rows(x.copy()), by_hand(x), "unit_rows(x) for rows of 1e200, 1, and 1e-200")


@pytest.mark.points(1)
def test_float32(problem, rng):
    """unit_rows keeps float32"""
    x = rng.normal(4, 3, dtype=np.float32)
    check(problem.unit_rows(x.copy()), by_hand(x), "unit_rows(x) for float32", all_digits=True)


@pytest.mark.points(1)
def test_argument_is_left_alone(problem, rng):
    """unit_rows leaves its argument alone"""
    x = rng.normal(3, 2)
    before = x.copy()
    result = problem.unit_rows(x)
    require(np.array_equal(x, before), "unit_rows(x)\nIt changed its own x.")
    check(result, by_hand(before), "unit_rows(x)")  # what does nothing changes nothing, either


# --- hidden tests ---


@pytest.mark.points(2)
@pytest.mark.parametrize("shape", [(7, 5), (3, 1), (2, 2, 3, 6)])
def test_hidden_rows(problem, solution, rng, shape):
    """unit_rows is right for other rows"""
    x = 3 * rng.normal(*shape)
    check(problem.unit_rows(x.copy()), solution.unit_rows(x), f"unit_rows(x) for shape {shape}")


@pytest.mark.points(2)
def test_hidden_sizes(problem, solution, rng):
    """unit_rows is right for rows of all sizes at once, and for zeros"""
    x = rng.normal(6, 4) * np.array([[1e250], [1e160], [1.0], [1e-170], [1e-250], [0.0]])
    check(problem.unit_rows(x.copy()), solution.unit_rows(x), "unit_rows(x) for all sizes")
