"""A multi-head attention whose output shows what dropout dropped, and what holds for that."""

import math

import torch

from grader.run.compare import require

COPIES = 8
"""How many entries of `telltale`'s output show the same weight."""


def plain_weights(n_embd):
    """Weights to build on: no queries and no keys, each token its own value, nothing mixed."""
    eye, zeros = torch.eye(n_embd), torch.zeros(n_embd)
    return {
        "c_attn.weight": torch.cat([0 * eye, 0 * eye, eye]),
        "c_attn.bias": zeros.repeat(3),
        "c_proj.weight": eye,
        "c_proj.bias": zeros,
    }


def telltale(make, scores):
    """A module, and a sequence for it, whose output shows which weights and entries were dropped.

    Args:
        make: makes a MultiHeadAttention that holds the given weights and has so many heads.
        scores: the scores of its heads, (n_head, T, T).

    Token t is the t-th unit vector. In head h the score of query i and key j is scores[h, i, j].
    Value j is 1 at COPIES places of its own, so there the output of query i shows the weight of
    (i, j). c_proj adds 1 to everything.
    """
    n_head, seq_len, _ = scores.shape
    head_dim = COPIES * seq_len
    n_embd = n_head * head_dim
    q, k, v = torch.zeros(3, n_head, head_dim, n_embd)
    for t in range(seq_len):
        q[:, :seq_len, t] = scores[:, t] * math.sqrt(head_dim)
        k[:, t, t] = 1
        v[:, COPIES * t : COPIES * (t + 1), t] = 1
    weights = plain_weights(n_embd)
    weights["c_attn.weight"] = torch.cat([part.reshape(n_embd, n_embd) for part in (q, k, v)])
    weights["c_proj.bias"] += 1
    return make(weights, n_head), torch.eye(seq_len, n_embd)


def shown_weights(scores, causal):
    """The weights before dropout, in the order in which the output shows them: (T, n_head, T)."""
    future = torch.ones(scores.shape, dtype=torch.bool).triu(1)
    hidden = future if causal else torch.zeros_like(future)
    powers = torch.where(hidden, 0, torch.exp(scores))
    return (powers / powers.sum(-1, keepdim=True)).transpose(0, 1)


def read_dropped(entries, weights, dropout):
    """Which weights and which entries of a telltale's output were dropped.

    Args:
        entries: the output, seen as (B, T, n_head, T, COPIES).
        weights: the weights before dropout, (T, n_head, T).
        dropout: the rate.

    Returns:
        A bool tensor (B, T, n_head, T) for the weights, and one of the shape of `entries`.
    """
    # An entry is 0 where it was dropped itself. Otherwise it is 1 / (1 - dropout) if its weight was
    # dropped, and more if not. That all COPIES entries of a weight are 0 is very rare.
    halfway = (1 + weights / 2) / (1 - dropout)
    return entries.amax(-1) < halfway, entries == 0


def check_growth(entries, dropout):
    """Require that what is kept of a telltale's output has grown; it is 1 or more without that."""
    smallest, grown = entries[entries != 0].min().item(), 1 / (1 - dropout)
    require(
        smallest > grown * (1 - 1e-5),
        f"In training with dropout={dropout}, an entry of the output that was kept is "
        f"{smallest:.4g}, where it should be {grown:.4g} or more: what is kept should grow by "
        "1 / (1 - dropout).",
    )


def check_rate(dropped, dropout, what, where):
    """Require that `dropped` has about the rate `dropout`, for every weight or entry alike."""
    rate = dropped.double().mean().item()
    error = math.sqrt(dropout * (1 - dropout) / dropped.numel())
    if abs(rate - (1 - dropout)) < 7 * error:
        where = "The rate says how many are dropped, not how many are kept."
    require(
        abs(rate - dropout) < 7 * error,
        f"In training with dropout={dropout}, {rate:.0%} of {what} were dropped. {where}",
    )
    rates = dropped.double().mean(0)
    require(
        rates.min() > 0.25 * dropout and rates.max() < 2 * dropout,
        f"In training with dropout={dropout}, some of {what} were dropped in {rates.min():.0%} of "
        f"the sequences and some in {rates.max():.0%}. Each should have the same chance.",
    )


def check_independent(dropped, dropout, axes, what):
    """Require that neighbours along each axis agree no more often than chance has it."""
    expected = dropout**2 + (1 - dropout) ** 2
    for dim, axis in enumerate(axes):
        pairs = dropped.int().diff(dim=dim) == 0
        if not pairs.numel():
            continue  # a single one has no neighbour
        agree = pairs.double().mean().item()
        error = math.sqrt(expected * (1 - expected) / pairs.numel())
        require(
            abs(agree - expected) < 8 * error,
            f"In training with dropout={dropout}, neighbours along the {axis} axis shared their "
            f"fate for {agree:.0%} of {what}; by chance it would be {expected:.0%}. Each should be "
            "dropped by itself.",
        )
