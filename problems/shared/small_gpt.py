"""Create random weights of a small GPT and of its parts, for the tests of problems 06, 07 and 09.

Each dict of weights maps the names in a module's `state_dict`, which are GPT-2's names, to tensors.
"""

import math


def part(weights, name):
    """Return the weights of the submodule `name`, by their names in that submodule."""
    start = f"{name}."
    return {
        full.removeprefix(start): weight
        for full, weight in weights.items()
        if full.startswith(start)
    }


def blocks(weights):
    """Return a list with the weights of each Block of a GPT."""
    every, start = [], "transformer.h"
    while block := part(weights, f"{start}.{len(every)}"):
        every.append(block)
    return every


# These weights are larger than the initial weights of a GPT, so each of them has an effect on the
# output. With initial weights, a GPT repeats its last token.


def under(name, weights):
    """Return the weights with the prefix `name.` before each key."""
    return {f"{name}.{inner}": weight for inner, weight in weights.items()}


def linear_weights(rng, n_in, n_out, *, bias=True, size=1.0):
    """Return random weights of an nn.Linear that scales its input by about `size`."""
    weights = {"weight": rng.normal(n_out, n_in) * size / math.sqrt(n_in)}
    return weights | ({"bias": rng.normal(n_out) * size / 2} if bias else {})


def norm_weights(rng, n_embd, *, bias=True):
    """Return random weights of a LayerNorm; `weight` is between 0.5 and 1.5."""
    weights = {"weight": 1 + rng.normal(n_embd).sin() / 2}
    return weights | ({"bias": rng.normal(n_embd) / 2} if bias else {})


def attention_weights(rng, n_embd, *, bias=True):
    """Return random weights of an attention; the scores are neither equal nor far apart."""
    return under("c_attn", linear_weights(rng, n_embd, 3 * n_embd, bias=bias, size=1.2)) | under(
        "c_proj", linear_weights(rng, n_embd, n_embd, bias=bias)
    )


def mlp_weights(rng, n_embd, *, bias=True):
    """Return random weights of an MLP."""
    return under("c_fc", linear_weights(rng, n_embd, 4 * n_embd, bias=bias)) | under(
        "c_proj", linear_weights(rng, 4 * n_embd, n_embd, bias=bias)
    )


def block_weights(rng, n_embd, *, bias=True):
    """Return random weights of a Block."""
    made = {
        "ln_1": norm_weights,
        "attn": attention_weights,
        "ln_2": norm_weights,
        "mlp": mlp_weights,
    }
    weights = {}
    for name, make in made.items():
        weights |= under(name, make(rng, n_embd, bias=bias))
    return weights


def gpt_weights(rng, vocab_size, n_positions, n_embd, n_layer, *, bias=True):
    """Return random weights of a GPT, by all names of its `state_dict`.

    `lm_head.weight` and `transformer.wte.weight` are the same tensor.
    """
    kinds = rng.normal(vocab_size, n_embd)
    weights = {"wte.weight": kinds, "wpe.weight": rng.normal(n_positions, n_embd)}
    for number in range(n_layer):
        weights |= under(f"h.{number}", block_weights(rng, n_embd, bias=bias))
    weights |= under("ln_f", norm_weights(rng, n_embd, bias=bias))
    return under("transformer", weights) | {"lm_head.weight": kinds}
