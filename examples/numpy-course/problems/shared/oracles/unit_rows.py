"""Compute the results of problem 01 in plain Python."""

import math

import numpy as np

EXAMPLE = np.array([[0.6, 0.8], [0.0, -1.0], [0.0, 0.0]])
"""The result of the worked example."""


def unit_row_by_hand(row):
    """Return a row divided by its norm. `math.hypot` computes the norm without overflow."""
    norm = math.hypot(*row) or 1.0
    return [entry / norm for entry in row]


def unit_rows(x):
    """Return an array with each row divided by its norm."""
    rows = [unit_row_by_hand(row) for row in x.reshape(-1, x.shape[-1]).tolist()]
    return np.array(rows, dtype=x.dtype).reshape(x.shape)
