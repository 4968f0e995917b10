"""Tests of problem 02. Run them with `uv run pytest` in this folder."""

import math

import numpy as np
import pytest

from grader.run.compare import check, require


def by_hand(a, b):
    """All distances, by `math.dist`."""
    return np.array([[math.dist(p, q) for q in b.tolist()] for p in a.tolist()], dtype=a.dtype)


@pytest.mark.points(1)
def test_worked_example(problem):
    """pairwise_distances gives the numbers of the worked example"""
    a = np.array([[0.0, 0.0], [3.0, 0.0]])
    b = np.array([[0.0, 4.0], [3.0, 0.0], [-3.0, 8.0]])
    expected = np.array([[4.0, 3.0, math.sqrt(73)], [5.0, 0.0, 10.0]])
    check(problem.pairwise_distances(a, b), expected, "pairwise_distances(a, b)")


@pytest.mark.points(1)
@pytest.mark.parametrize("sizes", [(3, 5, 4), (4, 2, 7)])
def test_by_hand(problem, rng, sizes):
    """pairwise_distances has a row for each point of a and a column for each of b"""
    n, m, d = sizes
    a, b = rng.normal(n, d), rng.normal(m, d)
    call = f"pairwise_distances(a, b) for n = {n}, m = {m}, d = {d}"
    check(problem.pairwise_distances(a.copy(), b.copy()), by_hand(a, b), call)


@pytest.mark.points(1)
def test_close_together(problem):
    """pairwise_distances is right for points that are far from 0 and close together"""
    a = 1e8 + np.array([[0.0, 0.0], [0.5, 0.25]])
    b = 1e8 + np.array([[0.0, 0.0], [0.0, 1.0], [0.5, 0.25]])
    call = "pairwise_distances(a, b) around 1e8"
    check(problem.pairwise_distances(a.copy(), b.copy()), by_hand(a, b), call)


@pytest.mark.points(1)
def test_other_coordinates(problem, rng):
    """pairwise_distances refuses points with other numbers of coordinates"""
    with pytest.raises(ValueError):  # noqa: PT011  (its words are free)
        problem.pairwise_distances(rng.normal(3, 1), rng.normal(2, 4))


@pytest.mark.points(1)
def test_arguments_are_left_alone(problem, rng):
    """pairwise_distances leaves its arguments alone"""
    a, b = rng.normal(3, 3), rng.normal(3, 3)
    before = a.copy(), b.copy()
    result = problem.pairwise_distances(a, b)
    for name, given, kept in zip("ab", (a, b), before, strict=True):
        message = f"pairwise_distances(a, b)\nIt changed its own {name}."
        require(np.array_equal(given, kept), message)
    check(result, by_hand(*before), "pairwise_distances(a, b)")


@pytest.mark.points(1)
def test_float32(problem, rng):
    """pairwise_distances keeps float32"""
    a, b = rng.normal(2, 3, dtype=np.float32), rng.normal(4, 3, dtype=np.float32)
    call = "pairwise_distances(a, b) for float32"
    check(problem.pairwise_distances(a.copy(), b.copy()), by_hand(a, b), call, all_digits=True)


# --- hidden tests ---


@pytest.mark.points(3)
@pytest.mark.parametrize("sizes", [(5, 3, 2), (1, 6, 4), (4, 4, 4)])
def test_hidden_sizes(problem, solution, rng, sizes):
    """pairwise_distances is right for other sizes"""
    n, m, d = sizes
    a, b = 2 * rng.normal(n, d), rng.normal(m, d)
    call = f"pairwise_distances(a, b) for n = {n}, m = {m}, d = {d}"
    check(problem.pairwise_distances(a.copy(), b.copy()), solution.pairwise_distances(a, b), call)


@pytest.mark.points(1)
def test_hidden_itself(problem, solution, rng):
    """pairwise_distances gives 0 for the distance of a point to itself"""
    a = 1e6 + rng.normal(6, 3)
    expected = solution.pairwise_distances(a, a)
    check(problem.pairwise_distances(a.copy(), a.copy()), expected, "pairwise_distances(a, a)")
