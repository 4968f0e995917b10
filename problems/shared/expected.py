"""Compute the expected results that pictures show next to the student's results.

No function shows the steps of a solution. The functions call built-in functions of PyTorch, or draw
from distributions of NumPy. For the weights of problems 01 and 03, the pictures call PyTorch's
softmax directly.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SimpleAttention(nn.Module):
    """The layer of problem 02, computed with F.scaled_dot_product_attention."""

    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        for name in ("query", "key", "value"):
            self.add_module(name, nn.Linear(n_embd, n_embd, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of unscaled attention for x, shape (B, T, C)."""
        q, k, v = (layer(x) for layer in self.children())
        return F.scaled_dot_product_attention(q, k, v, scale=1.0)


def dot_product_variance(
    d_k: int, n_pairs: int, scaled: bool, generator: torch.Generator | None = None
) -> float:
    """Return the variance of problem 03's dot products, without drawing the vectors.

    The dot product of q and k is distributed like |q| z, where z is a number from N(0, 1). The
    square of |q| has a chi-squared distribution.
    """
    seed = int(torch.randint(2**31, (), generator=generator))
    random = np.random.default_rng(seed)
    dots = np.sqrt(random.chisquare(d_k, n_pairs)) * random.standard_normal(n_pairs)
    return float(dots.var()) / (d_k if scaled else 1)


def causal_mask(seq_len: int, device: torch.device | None = None) -> Tensor:
    """Return the bool mask of problem 04, converted from PyTorch's mask of 0 and -inf."""
    return nn.Transformer.generate_square_subsequent_mask(seq_len, device=device) == 0


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Return the masked weights of problem 04, computed with F.scaled_dot_product_attention."""
    identity = torch.eye(scores.shape[-1], dtype=scores.dtype)
    return F.scaled_dot_product_attention(scores, identity, identity, attn_mask=mask, scale=1.0)


class MultiHeadAttention(nn.Module):
    """The layer of problem 05, computed by PyTorch without a mask and without dropout."""

    def __init__(self, n_embd: int = 768, n_head: int = 12, bias: bool = True) -> None:
        super().__init__()
        self.n_embd, self.n_head = n_embd, n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x, shape (B, T, C)."""
        x = x.transpose(0, 1)  # the built-in function expects (T, B, C)
        packed = self.c_attn.weight, self.c_attn.bias
        output, _ = F.multi_head_attention_forward(
            x, x, x, self.n_embd, self.n_head, *packed, None, None, False, 0.0,
            self.c_proj.weight, self.c_proj.bias, need_weights=False,
        )  # fmt: skip
        return output.transpose(0, 1)


def gelu(x: Tensor) -> Tensor:
    """Return the GELU of problem 06, which uses tanh."""
    return F.gelu(x, approximate="tanh")


class LayerNorm(nn.LayerNorm):
    """The LayerNorm of problem 06, with the arguments in the order of that problem."""

    def __init__(self, n_embd: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__(n_embd, eps, bias=bias)


class Block(nn.TransformerEncoderLayer):
    """The block of problem 06 without dropout, as PyTorch's nn.TransformerEncoderLayer.

    Args:
        n_embd: the embedding width C.
        n_head: the number of heads.
        norm_first: True if the norms come before attention and MLP, False if after the additions.
    """

    def __init__(self, n_embd: int = 768, n_head: int = 12, norm_first: bool = True) -> None:
        widths = (n_embd, n_head, 4 * n_embd)
        super().__init__(
            *widths, dropout=0.0, activation=gelu, batch_first=True, norm_first=norm_first
        )

    def set_weights(self, weights: dict[str, Tensor]) -> None:
        """Copy weights, given by GPT-2's names, to the layers with PyTorch's names."""
        names = {
            **{"ln_1": "norm1", "ln_2": "norm2", "mlp.c_fc": "linear1", "mlp.c_proj": "linear2"},
            **{"attn.c_proj": "self_attn.out_proj", "attn.c_attn": "self_attn.in_proj"},
        }
        renamed = {}
        for name, weight in weights.items():
            layer, _, kind = name.rpartition(".")
            renamed[names[layer] + ("_" if layer == "attn.c_attn" else ".") + kind] = weight
        self.load_state_dict(renamed)

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """Return the output for x, shape (B, T, C), with a causal mask."""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype)
        return super().forward(x, mask, is_causal=True)
