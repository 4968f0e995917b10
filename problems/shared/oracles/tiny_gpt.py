"""Compute the expected results for problem 07, and judge a GPT, its texts and batches."""

import math
from collections import Counter
from functools import partial

import torch

from grader.run.compare import check, check_form, check_number, missing_part, require
from shared.oracles.gpt import batched, cross_entropy_by_hand, gpt_by_hand, greedy_by_hand
from shared.oracles.judges import check_independent, check_rate

CLEAR = 1e-3
"""If the two largest logits differ by at most this number, the next token is not checked."""


# Parameters and initial weights


def are_parameters_of_gpt(actual, call, expected):
    """Require the parameters of GPT-2, and no others.

    Args:
        actual: a pair. First, a dict that contains the shape of each parameter under each of its
            names. Second, a list of the names of parameters that GPT-2 does not have.
        call: the call, as text.
        expected: the shapes of GPT-2's parameters, by name.
    """
    shapes, further = actual
    others = ", ".join(name for name in shapes if name not in expected) or "none"
    for name in expected:
        if name not in shapes:
            text = f"{call} has no parameter `{name}`. Parameters with other names: {others}."
            raise missing_part(text, "GPT")
    for name, shape in expected.items():
        message = f"`{name}` of {call} has shape {shapes[name]}; expected {tuple(shape)}."
        require(shapes[name] == tuple(shape), message)
    message = f"{call} has parameters that GPT-2 does not have: {', '.join(further)}."
    require(not further, message)


def is_initial_weight(weight, what, name, n_layer):
    """Require that a parameter has initial values as in GPT-2, according to its name."""
    if ".c_proj.weight" in name:
        why = f", which is 0.02 / √(2 · {n_layer})"
        check_spread(weight, 0.02 / math.sqrt(2 * n_layer), what, why)
    elif weight.dim() == 2:
        check_spread(weight, 0.02, what)
    else:
        number = 1.0 if name.endswith("weight") else 0.0
        same = bool((weight == number).all())
        require(same, f"All initial values of {what} should be {number:g}.")


def check_spread(weight, std, what, why=""):
    """Require that a weight has a mean of about 0 and the standard deviation `std`."""
    size, mean = weight.double().std().item(), weight.double().mean().item()
    require(
        abs(size - std) < 0.1 * std,
        f"The initial standard deviation of {what} is {size:.4g}; expected {std:.4g}{why}.",
    )
    far = 5 * std / math.sqrt(weight.numel())
    require(abs(mean) < far, f"The initial mean of {what} is {mean:.2g}; expected about 0.")


def is_first_loss(loss, call, vocab_size):
    """Require that the loss of a new model is about ln(vocab_size)."""
    expected = math.log(vocab_size)
    meaning = f"about ln({vocab_size}) = {expected:.2f}"
    check_number(loss, expected - 0.15, expected + 0.15, call, meaning)


# Logits and loss

logits, greedy, zeros = partial(batched, gpt_by_hand), greedy_by_hand, torch.zeros


def loss(logits, targets):
    """Return the mean cross entropy of logits (B, T, vocab_size), ignoring targets of -100."""
    rows = logits.flatten(0, 1).tolist()
    return logits.new_tensor(cross_entropy_by_hand(rows, targets.flatten().tolist()))


def are_logits_of_weights(logits_and_weights, call, idx, n_head, near):
    """Require the correct logits for given weights; `logits_and_weights` contains both."""
    actual, weights = logits_and_weights
    check(actual, logits(idx, weights, n_head, dtype=torch.float32), call, **near)


def has_learned(loss, call, enough, steps):
    """Require that the loss after training on four sequences is below `enough`."""
    message = f"It is still {loss:.2f} after up to {steps} steps of training on four sequences."
    require(loss < enough, f"{call}\n{message} It should fall below {enough}.")


# Dropout


def drops_embeddings_and_mlp(logits, call, dropout):
    """Require dropout of the embeddings and of the MLP's output.

    In the model of the test, all entries of the embeddings are 0.01, and the MLP adds 0.1.
    """
    flat = logits.flatten(0, 1)
    ordered = flat.sort(-1).values
    steps = torch.nn.functional.pad(ordered.diff() > 1e-6, (1, 0))
    fewest, most = (steps.sum(-1) + 1).aminmax()
    require(
        fewest == most == 4,
        f"{call}\nEach row should have four different values: each entry of the embeddings is "
        "dropped or kept, and so is each output of the Block's MLP. There are "
        f"{fewest} values. Is dropout applied to the sum of both embeddings, and is config.dropout "
        "passed to the Blocks?",
    )
    # The rank of each entry's value, from 0 for the smallest to 3.
    places = torch.empty_like(flat, dtype=torch.int64)
    places.scatter_(1, flat.argsort(-1), steps.cumsum(-1))
    places = places.reshape(logits.shape)
    kept_embedding, kept_block = places % 2 == 1, places >= 2
    dropped = ~kept_embedding, ~kept_block
    for each, what in zip(dropped, ("the embeddings", "the MLP's output"), strict=True):
        check_rate(
            each.flatten(0, 1), dropout, f"the entries of {what}", "Is it the rate of the config?"
        )
        check_independent(each, dropout, ("batch", "position", "channel"), f"entries of {what}")
    hidden = (kept_embedding.float() + 10 * kept_block) * 0.01 / (1 - dropout)
    expected = 0.01 * torch.nn.functional.layer_norm(hidden, hidden.shape[-1:])
    what = (
        f"the logits of {call}, where kept entries should be multiplied by 1/(1 - dropout) and not "
    )
    check(logits, expected, f"{what}change otherwise", atol=1e-7)


def reads_all(logits, call):
    """Require that nothing is dropped before the attention.

    If so, each output of the attention has one of two values: it is dropped or kept.
    """
    ordered = logits.flatten(0, 1).sort(-1).values
    most = int((ordered.diff() > 1e-5).sum(-1).max()) + 1
    require(
        most <= 2,
        f"{call}\nEach row should have two different values: each output of the attention is "
        f"dropped or kept. There are {most} values. Is something dropped before the attention?",
    )
    kept = (logits > 1e-6).float()  # the norm subtracts the mean, so dropped entries are below 0
    expected = 0.01 * torch.nn.functional.layer_norm(kept, kept.shape[-1:])
    check(logits, expected, f"the logits of {call}", atol=1e-4)


# generate


def continues(tokens, call, prompts, n_new, weights, sizes):
    """Require that the tokens are the prompts, each followed by its greedy continuation."""
    length = prompts.shape[1]
    form = torch.empty(len(prompts), length + n_new, dtype=torch.int64)
    check_form(tokens, form, call)
    same = torch.equal(tokens[:, :length], prompts)
    require(same, f"{call}\nThe result should begin with the unchanged prompt.")
    for row in tokens.tolist():
        for place in range(length, len(row)):
            check_next(row[: place + 1], weights, sizes, call)


def check_next(tokens, weights, sizes, call):
    """Require that the last token is the most probable one after the tokens before it."""
    *before, last = tokens
    expected, lead = greedy_by_hand(before, weights, sizes["n_head"], sizes["n_positions"])
    context = before[-sizes["n_positions"] :]
    require(
        last == expected or lead <= CLEAR,  # rounding may decide between nearly equal logits
        f"{call}\nAfter {before} it generated {last}; the most probable token is {expected}. To "
        f"find it, the model reads {context}, at positions from 0.",
    )


def followed_by(prompts, token, times):
    """Return the prompts, each followed by `times` repetitions of one token."""
    return torch.cat([prompts, torch.full((len(prompts), times), token)], dim=1)


# get_batch


def are_pieces(batch, call, data, n_positions, batch_size):
    """Require that the rows of x are pieces of the data. The rows of y begin one token later."""
    starts_of(batch, call, data, n_positions, batch_size)


def starts_of(batch, call, data, n_positions, batch_size):
    """Require correct pieces as in `are_pieces`, and return the position of each row in the data.

    No token may occur twice in the data.
    """
    form = torch.empty(batch_size, n_positions, dtype=torch.int64)
    x, y = batch
    x, y = check_form(x, form, f"x of {call}"), check_form(y, form, f"y of {call}")
    pieces = data.unfold(0, n_positions + 1, 1)
    both = torch.cat([x, y[:, -1:]], dim=1)
    fits = (both[:, None] == pieces[None]).all(-1)  # (row, piece): whether the row equals the piece
    right = fits.any(1) & (x[:, 1:] == y[:, :-1]).all(1)
    row = int(right.int().argmin())
    require(
        right.all(),
        f"{call}\nRow {row} of x is {x[row].tolist()}, and row {row} of y is {y[row].tolist()}. "
        f"The row of x should be a piece of data = {data.tolist()[:12]}..., and the row of y "
        "should be the piece that begins one token later.",
    )
    return fits.int().argmax(1)


def have_even_starts(batch, call, data, n_positions, batch_size):
    """Require that rows begin at each possible position about equally often and independently."""
    starts = starts_of(batch, call, data, n_positions, batch_size)
    possible = len(data) - n_positions
    share, counts = batch_size / possible, torch.bincount(starts, minlength=possible)
    far = 6 * math.sqrt(share)
    for start in sorted(range(possible), key=lambda start: counts[start]):
        count = int(counts[start])
        require(
            abs(count - share) < far,
            f"{call}\n{count} rows begin at {start}. The possible starts are 0 to "
            f"{possible - 1}, and each should occur about {share:.0f} times.",
        )
    steps = torch.bincount((starts.diff() % possible), minlength=possible)
    even = bool(((steps - share).abs() < far).all()) or possible == 1
    require(
        even,
        f"{call}\nThe starts of neighbouring rows depend on each other; draw each one separately.",
    )


def same_again(batches, call):
    """Require that two batches have the same x and the same y."""
    first, again = batches
    same = all(map(torch.equal, first, again))
    require(same, f"{call}\nWith the same seed, the batch is different.")


# bigram_loss

BIGRAM_IN_NUMBERS = {
    "abracadabra": 0.6 * math.log(2),  # 10 pairs; 4 begin with a: ab twice, ac, ad
    "abababab": 0.0,
    "aaab": math.log(3) - 2 / 3 * math.log(2),
    "aabb": 2 / 3 * math.log(2),
    "ab": 0.0,
    # 9 pairs: aa three times, ab twice, ac, ba, bc, ca; so 6 begin with a
    "aabacaaabc": -(3 * math.log(3 / 6) + 2 * math.log(2 / 6) + math.log(1 / 6)) / 9
    - 2 * math.log(1 / 2) / 9,
}


def bigram_loss(data):
    """Return the mean of -ln p(token | previous token), where p is the frequency in the data."""
    tokens = data.tolist()
    pairs, firsts = Counter(zip(tokens[:-1], tokens[1:], strict=True)), Counter(tokens[:-1])
    losses = (-count * math.log(count / firsts[first]) for (first, _), count in pairs.items())
    return math.fsum(losses) / (len(tokens) - 1)


def is_in_nats(value, call, expected):
    """Require a float or a tensor of one number, equal to `expected` within 1e-6."""
    is_tensor = torch.is_tensor(value) and value.dim() == 0
    is_float_in_nats(value.item() if is_tensor else value, call, expected)


def is_float_in_nats(value, call, expected):
    """Require a Python float, equal to `expected` within 1e-6."""
    check_number(value, expected - 1e-6, expected + 1e-6, call, f"{expected:.6f} nats")
