"""Compute the expected results for problem 08 in plain Python, and judge drawn tokens.

If the student's functions are not correct yet, explore.py of problem 08 calls `apply_temperature`,
`keep_top_k`, `keep_top_p` and `sample` of this file instead.
"""

import math

import torch

from grader.errors import Mismatch
from grader.run.compare import check, check_form, require
from shared.oracles.attention import softmax_by_hand

INF = math.inf

# The README's example has the logits 1, 4, 0, 2 and 3. These are the logits divided by each
# temperature, and their probabilities.
AT_TEMPERATURE = {
    0.5: torch.tensor([2.0, 8.0, 0.0, 4.0, 6.0]),
    1.0: torch.tensor([1.0, 4.0, 0.0, 2.0, 3.0]),
    2.0: torch.tensor([0.5, 2.0, 0.0, 1.0, 1.5]),
}
PROBABILITIES_AT = {
    0.5: torch.tensor([0.0021, 0.8647, 0.0003, 0.0158, 0.1170]),
    1.0: torch.tensor([0.0317, 0.6364, 0.0117, 0.0861, 0.2341]),
    2.0: torch.tensor([0.0956, 0.4287, 0.0580, 0.1577, 0.2600]),
}
# The filtered logits of the example. The keys are k in TOP_K, and p in TOP_P.
TOP_K = {
    1: torch.tensor([-INF, 4.0, -INF, -INF, -INF]),
    2: torch.tensor([-INF, 4.0, -INF, -INF, 3.0]),
    3: torch.tensor([-INF, 4.0, -INF, 2.0, 3.0]),
    5: torch.tensor([1.0, 4.0, 0.0, 2.0, 3.0]),
    8: torch.tensor([1.0, 4.0, 0.0, 2.0, 3.0]),
}
TOP_P = {
    0.05: torch.tensor([-INF, 4.0, -INF, -INF, -INF]),
    0.63: torch.tensor([-INF, 4.0, -INF, -INF, -INF]),
    0.64: torch.tensor([-INF, 4.0, -INF, -INF, 3.0]),
    0.9: torch.tensor([-INF, 4.0, -INF, 2.0, 3.0]),
    0.96: torch.tensor([1.0, 4.0, -INF, 2.0, 3.0]),
    0.999: torch.tensor([1.0, 4.0, 0.0, 2.0, 3.0]),
    1.0: torch.tensor([1.0, 4.0, 0.0, 2.0, 3.0]),
}
# The filtered logits of the example at temperature 0.5, with p = 0.999.
COLD_TOP_P = torch.tensor([2.0, 8.0, -INF, 4.0, 6.0])


# Expected results


def apply_temperature(logits, temperature):
    """Return the logits divided by the temperature."""
    return by_rows(lambda row: [logit / temperature for logit in row], logits)


def keep_top_k(logits, k):
    """Return the logits, with -inf in place of logits below the k-th largest of their row."""
    return by_rows(lambda row: top_k_by_hand(row, k), logits)


def keep_top_p(logits, p):
    """Return the logits, with -inf in place of the tokens that top-p drops."""
    return by_rows(lambda row: top_p_by_hand(row, p), logits)


def top_k_by_hand(row, k):
    """Apply `keep_top_k` to one row."""
    smallest = sorted(row, reverse=True)[:k][-1]
    return [logit if logit >= smallest else -INF for logit in row]


def top_p_by_hand(row, p):
    """Apply `keep_top_p` to one row: keep the most probable tokens until their sum reaches p."""
    probabilities = softmax_by_hand(row)
    result, total = [-INF] * len(row), 0.0
    for token in sorted(range(len(row)), key=probabilities.__getitem__, reverse=True):
        if p == 1 or total < p:
            result[token] = row[token]
        total += probabilities[token]
    return result


def by_rows(by_hand, logits):
    """Apply `by_hand`, a function from list to list, to each row of the logits."""
    rows = [by_hand(row) for row in rows_of(logits.double())]
    return torch.tensor(rows, dtype=torch.float64).reshape(logits.shape).to(logits.dtype)


def rows_of(logits):
    """Return the rows of logits of any shape, as a list of lists."""
    return logits.detach().reshape(-1, logits.shape[-1]).tolist()


def first_largest(logits):
    """Return the index of the largest logit of each row; of equal logits, the first one counts."""
    rows = [row.index(max(row)) for row in rows_of(logits)]
    return torch.tensor(rows).reshape(logits.shape[:-1])


def filtered(logits, temperature=1.0, top_k=None, top_p=None):
    """Return the logits after temperature and filters, from which `sample` draws."""
    kept = apply_temperature(logits, temperature)
    kept = kept if top_k is None else keep_top_k(kept, top_k)
    return kept if top_p is None else keep_top_p(kept, top_p)


def probabilities(row, **options):
    """Return the probability of each token for a list of logits and the options of `sample`."""
    return softmax_by_hand(filtered(torch.tensor(row).double(), **options).tolist())


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """Return a token for each row, drawn by torch.distributions.

    The random numbers come from a new seed, which `generator` draws.
    """
    if temperature == 0:
        return first_largest(logits)
    seed = int(torch.randint(2**31, (), generator=generator))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        kept = filtered(logits, temperature, top_k, top_p)
        return torch.distributions.Categorical(logits=kept).sample()


# Judges


def keeps(actual, call, logits, expected, near):
    """Require that a filter keeps the correct tokens, with unchanged logits.

    Args:
        actual: the result of the student's filter.
        call: the call, as text.
        logits: the argument of the filter.
        expected: the expected result.
        near: tolerances, as for `check`.
    """
    actual = check_form(actual, expected, call)
    wrong = ((actual > -INF) != (expected > -INF)).any(-1)
    if ((actual == logits) | (actual == -INF)).all() and wrong.any():
        kept, right = (
            (each[wrong][0] > -INF).nonzero().flatten().tolist() for each in (actual, expected)
        )
        raise Mismatch(
            f"{call}\nOf the row {shown(logits[wrong][0])}\n  it keeps the tokens     {kept}\n"
            f"  it should keep          {right}"
        )
    check(actual, expected, call, **near)


def shown(row):
    """Return at most eight numbers of a row as text."""
    numbers = [f"{number:.4g}" for number in row.tolist()]
    return f"[{', '.join(numbers[:8])}{', ...' if len(numbers) > 8 else ''}]"


def passes_gradients(gradient, call, kept, slope, near):
    """Require that the gradient of a filter equals `slope` for kept tokens.

    The gradient for dropped tokens is not checked. `kept` contains the filtered logits.
    """
    check(torch.where(kept > -INF, gradient, 0), torch.where(kept > -INF, slope, 0), call, **near)


def is_by_chance(count, number, probability):
    """Return whether `count` events in `number` trials are plausible for this probability.

    By Chernoff's bound, a count this far from the expected count, or farther, has a probability
    below exp(-exponent). So correct code fails less than once in 10^12 times.
    """
    share, rest = count / number, 1 - count / number
    if (count and not probability) or (rest and probability == 1):
        return False
    exponent = share * math.log(share / probability) if count else 0.0
    exponent += rest * math.log(rest / (1 - probability)) if rest else 0.0
    return number * exponent < 28


def are_tokens(drawn, call, shape):
    """Require a token number for each row of logits; `shape` is the shape of the logits."""
    *lead, vocab_size = shape
    check_form(drawn, torch.zeros(lead, dtype=torch.int64), call)
    low, high = int(drawn.min()), int(drawn.max())
    outside = low if low < 0 else high
    message = f"{call}\nIt drew the token {outside}; tokens are from 0 to {vocab_size - 1}."
    require(low >= 0 and high < vocab_size, message)


def have_frequencies(drawn, call, shape, probabilities):
    """Require for each row of `drawn` that its tokens have the probabilities in `probabilities`.

    The two arguments have the same number of rows. `shape` is the shape of one row of `drawn`.
    """
    are_tokens(drawn, call, (len(probabilities), *shape, len(probabilities[0])))
    for row, each in zip(drawn, probabilities, strict=True):
        has_frequencies(row, call, shape, each)


def has_frequencies(drawn, call, shape, probabilities):
    """Require that the frequency of each token fits its probability.

    All rows of logits are equal. `shape` is the shape of the logits without the last dimension.
    """
    are_tokens(drawn, call, (*shape, len(probabilities)))
    number, vocab_size = drawn.numel(), len(probabilities)
    counts = drawn.flatten().bincount(minlength=vocab_size).tolist()
    require(
        max(counts) < number or max(probabilities) > 0.98,
        f"{call}\nAll {number} rows got the same token; each row should be drawn separately.",
    )
    lines = [
        f"  token {token}: drawn for {count / number:.2%} of the rows, expected {probability:.2%}"
        for token, (count, probability) in enumerate(zip(counts, probabilities, strict=True))
        if not is_by_chance(count, number, probability)
    ]
    require(not lines, "\n".join([f"{call}, for {number} rows with these logits", *lines[:5]]))


def has_own_draws(drawn, call, shape, probabilities):
    """Require correct frequencies, and that the tokens of neighbouring rows are independent."""
    has_frequencies(drawn, call, shape, probabilities)
    alike = sum(probability**2 for probability in probabilities)
    pairs = (drawn[0::2], drawn[1::2]), (drawn[:, 0::2], drawn[:, 1::2])
    for axis, (one, other) in enumerate(pairs):
        same = int((one == other).sum())
        require(
            is_by_chance(same, one.numel(), alike),
            f"{call} with logits of shape {(*shape, len(probabilities))}\nNeighbours along "
            f"dimension {axis} got the same token in {same / one.numel():.0%} of all cases; "
            f"expected {alike:.0%}. Each row should be drawn separately.",
        )


def are_seeded(drawn, call, shape, same, different):
    """Require that draws with the same seed are equal, and that draws with other seeds differ.

    Args:
        drawn: the repeated draw, and several draws with different seeds.
        call: the call, as text.
        shape: the shape of the logits.
        same: the message if the repeated draw is not equal.
        different: the message if all draws are equal.
    """
    again, tokens = drawn
    are_tokens(again, call, shape)
    require(torch.equal(again, tokens[0]), f"{call}\n{same}")
    require((tokens != tokens[0]).any(), f"{call}\n{different}")


def comes_from_all(drawn, call, logits):
    """Require that tokens are drawn from the whole softmax: their mean log-probability fits it.

    For correct code, a difference of six standard deviations has a probability below 1e-8.
    """
    are_tokens(drawn, call, logits.shape)
    rank = (logits > logits.gather(-1, drawn[:, None])).sum(-1).max() + 1
    call = f"{call} with logits of shape {tuple(logits.shape)}"
    require(
        rank > 100,
        f"{call}\nIt drew only from the {rank} most "
        f"probable of {logits.shape[-1]} tokens. Is a filter on by default?",
    )
    logs = logits.double().log_softmax(-1)
    mean = (logs.exp() * logs).sum(-1, keepdim=True)
    spread = (logs.exp() * (logs - mean).square()).sum().sqrt()
    off = (logs.gather(-1, drawn[:, None]) - mean).sum() / spread
    side = "probable" if off > 0 else "improbable"
    require(off.abs() < 6, f"{call}\nIt drew {side} tokens too often, as if from other logits.")
