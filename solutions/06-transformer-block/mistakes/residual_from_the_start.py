"""Block adds the MLP to the x that came in, and loses attention

What goes on along the residual path, and what is added to it?

Weighs: idea.
"""

import math
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
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
        y = self.c_proj(y.transpose(1, 2).flatten(2))
        return F.dropout(y, self.dropout, self.training)


SQRT_2_OVER_PI: float = 0.79788456
GELU_COEFFICIENT: float = 0.044715


def gelu(x: torch.Tensor) -> torch.Tensor:
    """Apply the GELU activation function (tanh approximation)."""
    if not isinstance(x, torch.Tensor):
        raise TypeError("x must be a tensor")
    x_cubed = x.pow(3)
    scaled_cube = torch.mul(x_cubed, GELU_COEFFICIENT)
    inner_sum = torch.add(x, scaled_cube)
    scaled_inner = torch.mul(inner_sum, SQRT_2_OVER_PI)
    tanh_value = torch.tanh(scaled_inner)
    one_plus_tanh = torch.add(tanh_value, 1.0)
    half_x = torch.mul(x, 0.5)
    result = torch.mul(half_x, one_plus_tanh)
    return result


class LayerNorm(nn.Module):
    """Layer normalization with an optional bias."""

    weight: nn.Parameter
    bias: Optional[nn.Parameter]

    def __init__(self, n_embd: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.n_embd: int = n_embd
        self.register_buffer("epsilon", torch.tensor(eps, dtype=torch.float64), persistent=False)
        self.weight = nn.Parameter(torch.empty(n_embd))
        if bias:
            self.bias = nn.Parameter(torch.empty(n_embd))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros."""
        nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[-1] != self.n_embd:
            raise ValueError(f"expected last dimension {self.n_embd}, got {x.shape[-1]}")
        total = torch.sum(x, dim=-1, keepdim=True)
        mean = torch.div(total, self.n_embd)
        difference = torch.sub(x, mean)
        squared_difference = torch.square(difference)
        variance = torch.div(torch.sum(squared_difference, dim=-1, keepdim=True), self.n_embd)
        denominator = torch.sqrt(torch.add(variance, self.epsilon.to(x.dtype)))
        normalized = torch.div(difference, denominator)
        scaled = torch.mul(normalized, self.weight)
        if self.bias is not None:
            shifted = torch.add(scaled, self.bias)
        else:
            shifted = scaled
        assert shifted.shape == x.shape
        return shifted


class MLP(nn.Module):
    """Two linear layers with a GELU between them."""

    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc: nn.Linear = nn.Linear(in_features=n_embd, out_features=4 * n_embd, bias=bias)
        self.c_proj: nn.Linear = nn.Linear(in_features=4 * n_embd, out_features=n_embd, bias=bias)
        self.dropout: nn.Dropout = nn.Dropout(p=dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        expanded: torch.Tensor = self.c_fc(x)
        activated: torch.Tensor = gelu(expanded)
        projected: torch.Tensor = self.c_proj(activated)
        dropped: torch.Tensor = self.dropout(projected)
        return dropped


class Block(nn.Module):
    """A pre-norm transformer block."""

    def __init__(
        self,
        n_embd: int = 768,
        n_head: int = 12,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if n_embd % n_head != 0:
            raise ValueError("n_embd must be divisible by n_head")
        self.ln_1: LayerNorm = LayerNorm(n_embd=n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd=n_embd, n_head=n_head, dropout=dropout, bias=bias)
        self.ln_2: LayerNorm = LayerNorm(n_embd=n_embd, bias=bias)
        self.mlp: MLP = MLP(n_embd=n_embd, dropout=dropout, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual: torch.Tensor = x
        normalized: torch.Tensor = self.ln_1(x)
        attended: torch.Tensor = self.attn(normalized)
        x = torch.add(residual, attended)

        normalized = self.ln_2(x)
        transformed: torch.Tensor = self.mlp(normalized)
        x = torch.add(residual, transformed)
        return x
