"""Compute the expected results for problem 09 in plain Python: attention with a KV cache."""

import math
from functools import partial

import torch

from grader.run.compare import kind, require
from shared.oracles.attention import linear_by_hand, merged_heads_by_hand
from shared.oracles.gpt import batched, gpt_by_hand, greedy_by_hand

logits = partial(batched, gpt_by_hand)

# Maps the arguments of kv_cache_bytes to its result.
BYTES = {
    (1, 1, 1, 1, 1): 2,
    (12, 768, 1024): 37_748_736,
    (48, 1600, 1024): 314_572_800,
    (12, 768, 1024, 8): 301_989_888,
    (12, 768, 1024, 8, 4): 603_979_776,
    (2, 3, 5, 7, 11): 4620,
}

# `past` has the keys 1, 0 and the values 10, 20. A new token has query 1, key 2 and value 60.
# OUTPUT_IN_NUMBERS is the output for one new token, OUTPUTS_IN_NUMBERS for two equal ones.
OUTPUT_IN_NUMBERS = torch.tensor([[[44.1624]]])
OUTPUTS_IN_NUMBERS = torch.tensor([[[44.1624], [50.4893]]])
PRESENT_IN_NUMBERS = torch.tensor([[[[1.0], [0], [2]]]]), torch.tensor([[[[10.0], [20], [60]]]])


def is_number_of_bytes(value, call, expected):
    """Require the expected number of bytes. A float is accepted, as `is_int` checks the type."""
    shown = f"{value} ({type(value).__name__})" if isinstance(value, int | float) else kind(value)
    fits = isinstance(value, int | float) and value == expected
    require(fits, f"{call}\nIt returned {shown}; expected {expected} (int).")


def is_int(value, call):
    """Require an int that is the expected number of bytes."""
    is_number_of_bytes(value, call, 4620)
    message = f"{call}\nIt returned {value} ({type(value).__name__}); expected an int."
    require(type(value) is int, message)


def attention(x, past, weights, n_head):
    """Return the output and `present` of a CachedAttention with these weights.

    `present` consists of the keys and values of all tokens.

    Args:
        x: the new tokens, shape (B, T, C).
        past: the keys and values of earlier tokens, or None.
        weights: the weights by name.
        n_head: the number of heads.
    """
    outputs, sequences = [], []
    for number, rows in enumerate(x.tolist()):
        old = [] if past is None else rows_of_past(past[0][number], past[1][number])
        projected = old + linear_by_hand(rows, weights, "c_attn")
        heads = [
            merged_heads_by_hand(projected, i, n_head, True)
            for i in range(len(old), len(projected))
        ]
        outputs.append(linear_by_hand(heads, weights, "c_proj"))
        sequences.append(projected)
    _, keys, values = torch.tensor(sequences, dtype=x.dtype).chunk(3, dim=-1)
    present = in_heads(keys, n_head), in_heads(values, n_head)
    return torch.tensor(outputs, dtype=x.dtype), present


def rows_of_past(keys, values):
    """Return a row for each past token: its query, key and value, each with the heads joined.

    The query of a past token is unknown and not needed, so it is set to 0.
    """
    rows = []
    for place in range(keys.shape[1]):
        key, value = keys[:, place].flatten().tolist(), values[:, place].flatten().tolist()
        rows.append([0.0] * len(key) + key + value)
    return rows


def in_heads(rows, n_head):
    """Split a tensor (B, T, C) into heads (B, n_head, T, head_dim)."""
    batch, length, n_embd = rows.shape
    return rows.view(batch, length, n_head, n_embd // n_head).transpose(1, 2)


def generated(prompts, n_new, weights, config):
    """Return greedy continuations, and the smallest gap between a step's two largest logits."""
    texts, nearest = [], math.inf
    for tokens in prompts.tolist():
        for _ in range(n_new):
            sizes = config["n_head"], config["n_positions"]
            token, lead = greedy_by_hand(tokens, weights, *sizes)
            nearest = min(nearest, lead)
            tokens = [*tokens, token]
        texts.append(tokens)
    return torch.tensor(texts), nearest
