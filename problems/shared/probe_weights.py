"""Create fixed weights for questions about attention and GPT.

Every weight has an effect on the output, and attention scores are neither equal nor far apart.
"""

import functools
import math

import torch

from grader.diagnose.numbers import numbers
from grader.run.compare import parameters, set_weights
from shared.small_gpt import under


def linear(n_in, n_out, start, bias=True, size=1.0):
    """Return the weights of an nn.Linear; different values of `start` give different numbers."""
    weights = {"weight": numbers(n_out, n_in, start=start) * size / math.sqrt(n_in)}
    return weights | ({"bias": numbers(n_out, start=start + 0.1) / 2} if bias else {})


def attention_weights(n_embd, bias=True, start=0.1):
    """Return the weights of an attention with the layers c_attn and c_proj."""
    return under("c_attn", linear(n_embd, 3 * n_embd, start, bias, size=1.2)) | under(
        "c_proj", linear(n_embd, n_embd, start + 0.2, bias)
    )


def norm(n_embd, start, bias=True):
    """Return the weights of a LayerNorm."""
    weights = {"weight": 1 + numbers(n_embd, start=start) / 4}
    return weights | ({"bias": numbers(n_embd, start=start) / 2} if bias else {})


def gpt_weights(sizes):
    """Return the weights of a GPT; `sizes` contains the arguments of its GPTConfig by name."""
    return dict(_gpt_weights(tuple(sizes.items())))


@functools.cache
def _gpt_weights(items):
    sizes = dict(items)
    width, bias = sizes["n_embd"], sizes.get("bias", True)
    kinds = numbers(sizes["vocab_size"], width, start=2.47)
    kinds = kinds * math.sqrt(width) / 2 / kinds.norm(dim=-1, keepdim=True)
    weights = {"wte.weight": kinds, "wpe.weight": numbers(sizes["n_positions"], width, start=0.4)}
    for number in range(sizes["n_layer"]):
        start = 0.1 + number
        weights |= under(f"h.{number}.ln_1", norm(width, start, bias))
        weights |= under(f"h.{number}.attn", attention_weights(width, bias, start))
        weights |= under(f"h.{number}.ln_2", norm(width, start + 0.5, bias))
        weights |= under(f"h.{number}.mlp.c_fc", linear(width, 4 * width, start + 0.6, bias))
        weights |= under(f"h.{number}.mlp.c_proj", linear(4 * width, width, start + 0.7, bias))
    weights |= under("ln_f", norm(width, 0.8, bias))
    return under("transformer", weights) | {"lm_head.weight": kinds}


def without_block_outputs(weights):
    """Return the weights with zeros for every c_proj, so that each Block returns its input."""
    return {n: torch.zeros_like(w) if ".c_proj." in n else w for n, w in weights.items()}


def filled(module, weights, dtype=torch.float64):
    """Load weights into a module, and set every bias that `weights` does not contain to 0.

    So the output does not depend on additional biases. Other questions report these biases.
    """
    module = module.to(dtype)
    biases = {n: torch.zeros_like(p) for n, p in parameters(module).items() if n.endswith("bias")}
    set_weights(module, biases)  # first, as `weights` may contain a bias by another name
    set_weights(module, weights)
    return module
