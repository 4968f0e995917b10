"""Create an attention whose output shows which weights and entries dropout has dropped."""

import math

import torch

COPIES = 8
"""The number of output entries that show the same attention weight."""


def identity_weights(n_embd):
    """Return weights of a MultiHeadAttention: queries and keys are 0, values equal the tokens.

    c_proj returns its input.
    """
    eye, zeros = torch.eye(n_embd), torch.zeros(n_embd)
    return {
        "c_attn.weight": torch.cat([0 * eye, 0 * eye, eye]),
        "c_attn.bias": zeros.repeat(3),
        "c_proj.weight": eye,
        "c_proj.bias": zeros,
    }


def attention_with_visible_dropout(make, scores):
    """Return an attention module and an input sequence.

    The module's output for the sequence shows which weights and which output entries dropout has
    dropped. Token t is the t-th unit vector. In head h, the score of query i and key j is
    scores[h, i, j]. Value j is 1 in COPIES entries, which differ for each j and head, and 0
    elsewhere. So these entries of the output of query i equal the weight of key j, plus 1, which
    c_proj adds to all entries.

    Args:
        make: returns a MultiHeadAttention with the given weights and number of heads.
        scores: the attention scores of each head, shape (n_head, T, T).
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
