import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
    """Given."""

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        thirds = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (third.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for third in thirds)
        rate = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)
        y = self.c_proj(y.transpose(1, 2).flatten(2))  # (B, n_head, T, head_dim) -> (B, T, C)
        return F.dropout(y, self.dropout, self.training)


def gelu(x: Tensor) -> Tensor:
    """Half of x for small numbers, nothing far below 0 and all of x far above."""
    # Beyond 10 tanh is 1 to the last digit, and the cube of a huge number would overflow.
    near = x.clamp(-10, 10)
    bend = torch.tanh(math.sqrt(2 / math.pi) * near * (1 + 0.044715 * near * near))
    return x * (1 + bend) / 2


class LayerNorm(nn.Module):
    """Each row to mean 0 and variance 1, then scaled and shifted as learned."""

    def __init__(self, n_embd: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.register_parameter("bias", nn.Parameter(torch.zeros(n_embd)) if bias else None)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)  # of what is centred: no cancelling
        y = self.weight * centred / (variance + self.eps).sqrt()
        return y if self.bias is None else y + self.bias


class MLP(nn.Module):
    """Widen, bend, narrow."""

    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(gelu(self.c_fc(x))))


class Block(nn.Module):
    """Attention, then the MLP; each reads the normed x and adds to x itself."""

    def __init__(
        self, n_embd: int = 768, n_head: int = 12, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = (LayerNorm(n_embd, bias) for _ in range(2))
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        for norm, part in ((self.ln_1, self.attn), (self.ln_2, self.mlp)):
            x = x + part(norm(x))
        return x
