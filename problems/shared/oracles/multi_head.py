"""Compute the expected results for problem 05 in plain Python."""

import torch

from shared.oracles.attention import multi_head_by_hand, slopes_by_hand

output = multi_head_by_hand


def slopes(x, weights, n_head, causal, upstream):
    """Return the gradients with respect to x and the weights, by central differences."""
    inputs = {"x": x, **weights}
    return slopes_by_hand(lambda at: output(at["x"], at, n_head, causal), inputs, upstream)


def split(x, n_head):
    """Split tokens (B, T, C) into heads: head h contains C // n_head neighbouring entries."""
    batch, seq_len, n_embd = x.shape
    head_dim = n_embd // n_head
    heads = torch.empty(batch, n_head, seq_len, head_dim, dtype=x.dtype)
    for h in range(n_head):
        for c in range(head_dim):
            heads[:, h, :, c] = x[:, :, h * head_dim + c]
    return heads


def merge(x):
    """Join heads (B, n_head, T, head_dim): entry c of head h becomes entry h * head_dim + c."""
    batch, n_head, seq_len, head_dim = x.shape
    merged = torch.empty(batch, seq_len, n_head * head_dim, dtype=x.dtype)
    for h in range(n_head):
        for c in range(head_dim):
            merged[:, :, h * head_dim + c] = x[:, h, :, c]
    return merged
