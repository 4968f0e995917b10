"""Compute the parts of a GPT by hand: in plain Python, number by number.

`rows` is one sequence: a list with a list of numbers for each token. `weights` is a dict:
its keys are GPT-2's names, as in the `state_dict` of a module, and its values are tensors.
"""

import math
from functools import partial

import torch

from grader.run.compare import require
from shared.oracles.attention import dot, linear_by_hand, merged_heads_by_hand
from shared.small_gpt import blocks, part


def gelu_by_hand(number):
    """Return GPT-2's GELU of a number, computed with tanh."""
    bent = math.tanh(math.sqrt(2 / math.pi) * (number + 0.044715 * number**3))
    return 0.5 * number * (1 + bent)


def normalised_by_hand(row, eps=1e-5):
    """Return (row - mean) / sqrt(variance + eps), with the mean and variance of the row."""
    mean = math.fsum(row) / len(row)
    variance = math.fsum((number - mean) ** 2 for number in row) / len(row)
    return [(number - mean) / math.sqrt(variance + eps) for number in row]


def layer_norm_by_hand(rows, weights, eps=1e-5):
    """Apply a LayerNorm to each row; `weights` contains `weight` and may contain `bias`."""
    weight = weights["weight"].tolist()
    bias = weights["bias"].tolist() if "bias" in weights else [0.0] * len(weight)
    return [
        [number * w + b for number, w, b in zip(row, weight, bias, strict=True)]
        for row in (normalised_by_hand(row, eps) for row in rows)
    ]


def mlp_by_hand(rows, weights):
    """Apply an MLP with layers c_fc and c_proj to each row, without dropout."""
    hidden = [list(map(gelu_by_hand, row)) for row in linear_by_hand(rows, weights, "c_fc")]
    return linear_by_hand(hidden, weights, "c_proj")


def causal_self_attention_by_hand(rows, weights, n_head):
    """Apply causal attention with layers c_attn and c_proj to a sequence, without dropout."""
    projected = linear_by_hand(rows, weights, "c_attn")
    heads = [merged_heads_by_hand(projected, i, n_head, True) for i in range(len(rows))]
    return linear_by_hand(heads, weights, "c_proj")


def added_by_hand(rows, others):
    """Add two sequences, number by number."""
    pairs = zip(rows, others, strict=True)
    return [[a + b for a, b in zip(*pair, strict=True)] for pair in pairs]


def block_by_hand(rows, weights, n_head):
    """Apply a Block with parts ln_1, attn, ln_2 and mlp to a sequence, without dropout."""
    normed = layer_norm_by_hand(rows, part(weights, "ln_1"))
    attended = causal_self_attention_by_hand(normed, part(weights, "attn"), n_head)
    rows = added_by_hand(rows, attended)
    normed = layer_norm_by_hand(rows, part(weights, "ln_2"))
    return added_by_hand(rows, mlp_by_hand(normed, part(weights, "mlp")))


def gpt_by_hand(tokens, weights, n_head):
    """Return the logits of a GPT with these weights, a list for each position."""
    kinds = weights["transformer.wte.weight"].tolist()
    places = weights["transformer.wpe.weight"].tolist()
    rows = added_by_hand([kinds[token] for token in tokens], places[: len(tokens)])
    for block in blocks(weights):
        rows = block_by_hand(rows, block, n_head)
    rows = layer_norm_by_hand(rows, part(weights, "transformer.ln_f"))
    return [[dot(row, kind) for kind in kinds] for row in rows]  # lm_head has the weights of wte


def batched(by_hand, x, *arguments, dtype=None):
    """Apply a function to each sequence of a batch, and return a tensor.

    Args:
        by_hand: the function for one sequence, such as `block_by_hand`.
        x: the batch: embeddings (B, T, C) or tokens (B, T).
        arguments: the arguments of `by_hand` after the sequence.
        dtype: the dtype of the result; by default that of x, or float32 if x contains tokens.
    """
    dtype = dtype or (x.dtype if x.is_floating_point() else torch.float32)
    return torch.tensor([by_hand(each, *arguments) for each in x.tolist()], dtype=dtype)


def cross_entropy_by_hand(logits, targets):
    """Return the mean of -ln(probability) of the targets, ignoring targets of -100."""
    losses = [
        log_sum_by_hand(row) - row[target]
        for row, target in zip(logits, targets, strict=True)
        if target != -100
    ]
    return math.fsum(losses) / len(losses)


def log_sum_by_hand(row):
    """Return ln of the sum of exp(number) over a row, without overflow."""
    largest = max(row)
    return largest + math.log(math.fsum(math.exp(number - largest) for number in row))


def greedy_by_hand(tokens, weights, n_head, n_positions):
    """Return the most probable next token, and its logit minus the second largest logit.

    The model reads only the last n_positions tokens. The first of them has position 0.
    """
    logits = gpt_by_hand(tokens[-n_positions:], weights, n_head)[-1]
    best, second = sorted(logits, reverse=True)[:2]
    return logits.index(best), best - second


# Expected results of the parts of a Block, as tensors

mlp, block = partial(batched, mlp_by_hand), partial(batched, block_by_hand)
ones, zeros = torch.ones, torch.zeros

# The GELU of -3, -2, -1, -0.5, 0, 0.5, 1, 2 and 3.
GELU_IN_NUMBERS = torch.tensor(
    [-0.0036373920817729943, -0.04540230591222494, -0.15880800939172324, -0.15428599017485606]
    + [0, 0.34571400982514394, 0.8411919906082768, 1.954597694087775, 2.996362607918227]
)
# The output of a new LayerNorm for 1, 2, 3 and 4.
NORM_IN_NUMBERS = torch.tensor([-1.34163542, -0.44721181, 0.44721181, 1.34163542])


def elementwise(by_hand, x):
    """Apply a function of one number to each number of a tensor."""
    return torch.tensor([by_hand(n) for n in x.flatten().tolist()], dtype=x.dtype).reshape(x.shape)


gelu = partial(elementwise, gelu_by_hand)


def gelu_slopes_far_from_0(x):
    """Return the derivative of gelu at numbers above 10, which is 1, or below -10, which is 0."""
    return (x > 0).to(x.dtype)


def has_tanh(output, call, x):
    """Require the GELU with tanh, identified by its largest difference from the GELU with erf."""
    with_erf = elementwise(lambda number: 0.5 * number * (1 + math.erf(number / math.sqrt(2))), x)
    far = (output - with_erf).abs().max().item()
    require(
        4.68e-4 < far < 4.78e-4,
        f"{call}\nThe largest difference from x Φ(x), the GELU with the error function, is "
        f"{far:.3g}; for the GELU with tanh it is 0.000473.",
    )


def layer_norm(x, weights, eps=1e-5):
    """Apply LayerNorm to a tensor of any shape."""
    rows = x.reshape(-1, x.shape[-1]).tolist()
    return torch.tensor(layer_norm_by_hand(rows, weights, eps), dtype=x.dtype).reshape(x.shape)


def is_size_of_block(total, call, n_embd, bias):
    """Require that `total` is the expected number of parameters of a Block."""
    expected = 12 * n_embd**2 + (13 if bias else 2) * n_embd
    require(total == expected, f"{call} has {total:,} parameters; expected {expected:,}.")
