"""Create an attention whose output shows which weights and entries dropout has dropped."""

import math

import torch

COPIES = 8
"""How many entries of `telltale`'s output show the same weight."""


def identity_weights(n_embd):
    """Return weights with which queries and keys are 0, and each token's value and output are the
    token itself.
    """
    eye, zeros = torch.eye(n_embd), torch.zeros(n_embd)
    return {
        "c_attn.weight": torch.cat([0 * eye, 0 * eye, eye]),
        "c_attn.bias": zeros.repeat(3),
        "c_proj.weight": eye,
        "c_proj.bias": zeros,
    }


def attention_with_visible_dropout(make, scores):
    """Return a module and a sequence. The module's output shows which weights and entries were
    dropped.

    Args:
        make: returns a MultiHeadAttention with the given weights and number of heads.
        scores: the scores of its heads, (n_head, T, T).

    Token t is the t-th unit vector. In head h the score of query i and key j is scores[h, i, j].
    Value j is 1 at COPIES separate places. So the output of query i shows the weight of (i, j) at
    these places. c_proj adds 1 to everything.
    """
    n_head, seq_len, _ = scores.shape
    head_dim = COPIES * seq_len
    n_embd = n_head * head_dim
    q, k, v = torch.zeros(3, n_head, head_dim, n_embd)
    for t in range(seq_len):
        q[:, :seq_len, t] = scores[:, t] * math.sqrt(head_dim)
        k[:, t, t] = 1
        v[:, COPIES * t : COPIES * (t + 1), t] = 1
    weights = identity_weights(n_embd)
    weights["c_attn.weight"] = torch.cat([part.reshape(n_embd, n_embd) for part in (q, k, v)])
    weights["c_proj.bias"] += 1
    return make(weights, n_head), torch.eye(seq_len, n_embd)
