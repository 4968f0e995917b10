"""Judge results that have no single expected value: dropout, errors and changed arguments."""

import math

import torch

from grader.run.compare import check, require
from shared.visible_dropout import COPIES


def refused(outcome, call, enabled, reason=""):
    """Require that a call raised ValueError and did not change the gradient mode.

    Args:
        outcome: a pair: the name of the exception, or "" if none was raised, and the gradient mode
            after the call.
        call: the call, as text.
        enabled: the gradient mode before the call.
        reason: the clause after "as" in the message; by default there is none.
    """
    raised, mode = outcome
    result = f"It raised {raised}" if raised else "It raised nothing"
    why = f", as {reason}" if reason else ""
    require(raised == "ValueError", f"{call}\n{result}; it should raise ValueError{why}.")
    is_gradient_mode(mode, call, enabled)


def is_gradient_mode(mode, call, enabled):
    """Require that a call did not change the gradient mode.

    `mode` is the gradient mode after the call, and `enabled` the mode before it.
    """
    require(
        mode is enabled,
        f"{call}\nYour code leaves gradients switched {'off' if enabled else 'on'} for all code "
        "that runs later. A block `with torch.no_grad():` switches them on again at its end.",
    )


def is_unchanged(argument, call, name, numbers, requires_grad):
    """Require that a call did not change the numbers or the requires_grad of an argument.

    `argument` contains the tensor and its requires_grad after the call.
    """
    tensor, still_requires_grad = argument
    same = torch.equal(tensor, numbers) and still_requires_grad is requires_grad
    require(same, f"{call}\nYour code changed its argument {name}.")


def is_kept(actual, call, name, weight):
    """Require that a call did not change the weight `name`, which the test has set."""
    same = torch.equal(actual, weight)
    require(same, f"{call}\nYour code changed the weights of the module, in `{name}`.")


# Dropout. Functions with an argument `scores` judge the attention of shared/visible_dropout.py.


def weights_without_dropout(scores, causal=False):
    """Return the attention weights before dropout, with the axes (query, head, key).

    `scores` has the axes (head, query, key).
    """
    future = torch.ones(scores.shape, dtype=torch.bool).triu(1)
    hidden = future if causal else torch.zeros_like(future)
    powers = torch.where(hidden, 0, torch.exp(scores))
    return (powers / powers.sum(-1, keepdim=True)).transpose(0, 1)


def output_without_dropout(scores, causal=False):
    """Return the attention's expected output in evaluation mode, shape (1, T, C)."""
    weights = weights_without_dropout(scores, causal)
    return weights.flatten(1).repeat_interleave(COPIES, dim=1)[None] + 1


def read_dropped(output, scores, dropout, causal=False):
    """Infer from an output which attention weights and which output entries were dropped.

    Args:
        output: the output for B copies of the sequence, shape (B, T, C).
        scores: the attention scores of each head.
        dropout: the dropout rate.
        causal: whether the module is causal.

    Returns:
        Three tensors. The first is True for dropped weights and has the axes (sequence, query,
        head, key). The second is True for dropped entries, and the third contains the entries
        themselves. Both have a further axis for the COPIES entries of each weight.
    """
    n_head, seq_len, _ = scores.shape
    entries = output.reshape(len(output), seq_len, n_head, seq_len, COPIES)
    # A dropped entry is 0. A kept entry is 1 / (1 - dropout) if its weight was dropped, and larger
    # otherwise. It is very rare that all COPIES entries of a weight are dropped.
    halfway = (1 + weights_without_dropout(scores, causal) / 2) / (1 - dropout)
    return entries.amax(-1) < halfway, entries == 0, entries


def drops_weights_and_entries(output, call, scores, dropout, causal):
    """Require that attention weights and output entries are dropped as nn.Dropout drops them."""
    check_finite(output, call)
    weights = weights_without_dropout(scores, causal)
    weight_dropped, entry_dropped, entries = read_dropped(output, scores, dropout, causal)
    # Check entries first, as weights can be inferred only if entries are dropped independently.
    question = "Which layer should drop them, and where is it called?"
    check_rate(entry_dropped, dropout, "the entries of the output", question)
    axes = ("batch", "position", "channel")
    check_independent(entry_dropped.flatten(2), dropout, axes, "the entries of the output")
    check_growth(entries, dropout, weights.max().item())
    visible = weight_dropped[:, weights > 0]
    check_rate(visible, dropout, "the attention weights", question)
    is_kept = ~(weight_dropped[..., None] | entry_dropped) & (weights > 0)[..., None]
    check_kept_weights((entries * (1 - dropout) - 1)[is_kept], weights, is_kept, dropout)
    kept = torch.where(weight_dropped, 0, weights / (1 - dropout))[..., None]
    expected = torch.where(entry_dropped, 0, (kept + 1) / (1 - dropout))
    check(
        entries,
        expected,
        f"{call}, with the axes (batch, query, head, key, {COPIES} copies of the weight plus 1), "
        f"where kept entries should be multiplied by 1 / (1 - {dropout}) and not change otherwise",
    )
    if not causal:
        axes = ("batch", "query", "head", "key")
        check_independent(weight_dropped, dropout, axes, "the attention weights")


def drops_differently(outputs, call, scores, dropout):
    """Require that calls drop different entries, except two calls after the same seed.

    Args:
        outputs: the outputs of several calls in training mode, by name. `first` and `again` come
            after torch.manual_seed(1), `other` after torch.manual_seed(2), and `next` after `other`
            without a new seed.
        call: the call, as text.
        scores: the attention scores of each head.
        dropout: the dropout rate.
    """
    dropped = {n: read_dropped(each, scores, dropout)[:2] for n, each in outputs.items()}
    for one, two, what in [
        ("other", "next", "Two calls"),
        ("first", "other", "A call after torch.manual_seed(1) and one after torch.manual_seed(2)"),
    ]:
        (weights_1, entries_1), (weights_2, entries_2) = dropped[one], dropped[two]
        shown = ~(entries_1.all(-1) | entries_2.all(-1))
        # Here, two calls that drop no weights are accepted. The check of the numbers reports them.
        none = not (weights_1 | weights_2)[shown].any()
        different = none or not torch.equal(weights_1[shown], weights_2[shown])
        same = f"{call}\n{what} dropped the same"
        require(different, f"{same} weights; each should drop different ones.")
        different = not torch.equal(entries_1, entries_2)
        require(different, f"{same} entries of the output; each should drop different ones.")
    for i, what in enumerate(["weights", "entries of the output"]):
        numbers = {int(both[i].sum()) for both in dropped.values()}
        message = f"{call}\n{len(dropped)} calls dropped {min(numbers)} {what} each. If each is "
        require(len(numbers) > 1, f"{message}dropped independently, their number varies.")
    pairs = zip(dropped["again"], dropped["first"], strict=True)
    require(
        all(torch.equal(*pair) for pair in pairs),
        f"{call}\nTwo calls, each after torch.manual_seed(1), dropped different entries. Do all "
        "random numbers come from torch's global generator?",
    )
    again = f"{call}, a second time after torch.manual_seed(1)"
    check(outputs["again"], outputs["first"], again)
    some = all(entries.any() for _, entries in dropped.values())
    require(some, f"{call}\nOne of {len(dropped)} calls dropped none of the entries of the output.")


def drops_entries(output, call, whole, rate, what, near):
    """Require that entries were dropped independently, and that kept entries were scaled up.

    Args:
        output: the entries in training mode.
        call: the call, as text.
        whole: the same entries without dropout; no entry is 0.
        rate: the dropout rate.
        what: the name of the entries, in the plural.
        near: tolerances, as for `check`.
    """
    check_finite(output, call)
    dropped = output.abs() < 1e-9
    check_rate(
        dropped, rate, what, f"Which layer drops them, and where is it called? The call was {call}."
    )
    expected = torch.where(dropped, 0, whole / (1 - rate))
    grown = f"where the kept part of {what} should be multiplied by 1 / (1 - {rate})"
    check(output, expected, f"{call}, {grown}, and dropped entries should be 0", **near)
    check_independent(dropped, rate, ("batch", "position", "channel"), what)


def drops_what_is_added(output, call, x, whole, rate, half, silent, near):
    """Require that a Block drops entries of one half's output, and no entries of x.

    Args:
        output: the output in training mode, for several copies of x.
        call: the call, as text.
        x: a single sequence, shape (1, T, C).
        whole: the vectors that the half adds to x without dropout.
        rate: the dropout rate.
        half: the name of this half: "attn" or "mlp".
        silent: the name of the other half, which adds 0.
        near: tolerances, as for `check`.
    """
    require(
        (output == 0).double().mean() < rate / 10,
        f"{call}\nSome entries of the output are 0, so entries of x were also dropped. Only the "
        f"output of {half} should be dropped, before it is added to x.",
    )
    what = f"the entries that {half} adds to x"
    added = output - x.expand_as(output)
    call = f"{call} where {silent} adds nothing"
    drops_entries(added, call, whole.expand_as(output), rate, what, near)


def adds_all_or_nothing(output, call, x, whole, near):
    """Require that a Block's attention adds either 0 or the entry of `whole` to each entry of x."""
    added = output - x.expand_as(output)
    check(
        added,
        torch.where(added.abs() < 1e-6, 0, whole),
        f"{call}: an entry that attn adds should be 0 if it or its weight was dropped. Otherwise, "
        "both dropouts should scale it up. Is something dropped before the attention?",
        **near,
    )


def check_finite(output, call):
    """Require finite numbers; the other checks of dropout assume them."""
    lost = (~output.isfinite()).double().mean().item()
    require(lost == 0, f"{call}\n{lost:.0%} of the entries are NaN or infinite.")


def check_growth(entries, dropout, largest_weight):
    """Require that the kept output entries are scaled up by 1 / (1 - dropout)."""
    smallest, grown = entries[entries != 0].min().item(), 1 / (1 - dropout)
    # Without dropout, an entry is 1 plus its weight. If only the weight is dropped, it is 1.
    require(
        grown * (1 - 1e-5) < smallest < grown * (1 + largest_weight) * (1 + 1e-5),
        f"In training with dropout={dropout}, the smallest kept entry of the output is "
        f"{smallest:.4g}. Without dropout, all entries are between 1 and {1 + largest_weight:.4g}. "
        "Kept entries are scaled up so that the mean stays the same. Which factor does that?",
    )


def check_kept_weights(found, weights, is_kept, dropout):
    """If all kept weights are scaled by one factor, require that the factor is 1 / (1 - dropout).

    Args:
        found: the kept weights in training mode, one for each kept entry.
        weights: the weights without dropout, with the axes (query, head, key).
        is_kept: True for kept entries of kept weights, with the axes (sequence, query, head, key,
            copy).
        dropout: the dropout rate.
    """
    factors = found / weights[..., None].expand(is_kept.shape)[is_kept]
    factor = factors.median().item()
    is_one = (factors - factor).abs().max().item() < 1e-3 * factor
    times = "" if f"{factor:.4g}" == "1" else f"{factor:.4g} times "
    require(
        not is_one or math.isclose(factor, 1 / (1 - dropout), rel_tol=1e-3),
        f"In training with dropout={dropout}, each kept weight is {times}as large as without "
        "dropout. On average over kept and dropped weights, a weight should not change.",
    )


def check_rate(dropped, dropout, what, where):
    """Require that the share of dropped numbers is about `dropout`, in total and at each position.

    Args:
        dropped: True for dropped numbers; the first axis is the batch.
        dropout: the dropout rate.
        what: the name of the numbers, in the plural.
        where: a question about the cause, for the message.
    """
    rate = dropped.double().mean().item()
    error = math.sqrt(dropout * (1 - dropout) / dropped.numel())
    if abs(rate - (1 - dropout)) < 7 * error:
        where = "The rate is the share of what?"
    require(
        abs(rate - dropout) < 7 * error,
        f"In training with dropout={dropout}, {rate:.0%} of {what} were dropped. {where}",
    )
    rates = dropped.double().mean(0)
    require(
        rates.min() > 0.25 * dropout and rates.max() < 2 * dropout,
        f"In training with dropout={dropout}, the chance of being dropped differs among {what}: "
        f"from {rates.min():.0%} to {rates.max():.0%}. It should be the same for all.",
    )


def check_independent(dropped, dropout, axes, what):
    """Require that neighbours along each axis are dropped independently of each other.

    Args:
        dropped: True for dropped numbers.
        dropout: the dropout rate.
        axes: the names of the axes of `dropped`.
        what: the name of the numbers, in the plural.
    """
    expected = dropout**2 + (1 - dropout) ** 2
    for dim, axis in enumerate(axes):
        pairs = dropped.int().diff(dim=dim) == 0
        if not pairs.numel():
            continue  # without neighbours
        agree = pairs.double().mean().item()
        error = math.sqrt(expected * (1 - expected) / pairs.numel())
        require(
            abs(agree - expected) < 8 * error,
            f"In training with dropout={dropout}, neighbours along the {axis} axis were both kept "
            f"or both dropped for {agree:.0%} of {what}. It should be {expected:.0%}, as each is "
            "dropped independently.",
        )
