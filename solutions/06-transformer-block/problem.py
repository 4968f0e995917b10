"""Problem 06, reference solution."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
    """Given: the attention of problem 05, computed by PyTorch's own function.

    Args:
        n_embd: the embedding width C.
        n_head: the number of heads; it divides C.
        dropout: the share of weights, and of output entries, that is dropped in training.
        causal: whether a token attends only to itself and to earlier tokens.
        bias: whether the linear layers have a bias.
    """

    def __init__(
        self,
        n_embd: int,
        n_head: int,
        *,
        dropout: float = 0.0,
        causal: bool = True,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.causal = causal
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Let each token attend to itself and to earlier tokens: (B, T, C) -> (B, T, C)."""
        thirds = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (third.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for third in thirds)
        rate = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=self.causal)
        y = self.c_proj(y.transpose(1, 2).flatten(2))  # (B, n_head, T, head_dim) -> (B, T, C)
        return F.dropout(y, self.dropout, self.training)


def gelu(x: Tensor) -> Tensor:
    """Apply the activation function of GPT-2: the GELU, in its form with tanh.

    Args:
        x: a tensor of any shape, with entries of any size.

    Returns:
        A tensor of the same shape.
    """
    # The cube of a very large number is inf, and tanh(inf) is 1. So no number has to be clipped.
    bent = torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + bent)


class LayerNorm(nn.Module):
    """Normalises each token to mean 0 and variance 1, then applies a learned scale and shift.

    Args:
        n_embd: the number of entries of a token.
        bias: whether there is a bias.
        eps: a number that is added to the variance, so that nothing is divided by 0.
    """

    def __init__(self, n_embd: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(n_embd))
        self.bias = nn.Parameter(torch.zeros(n_embd)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise over the last dimension.

        Args:
            x: embeddings, shape (..., n_embd).

        Returns:
            A tensor of the same shape.
        """
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.square().mean(-1, keepdim=True)  # (..., 1), of the population
        y = centred / torch.sqrt(variance + self.eps) * self.weight
        return y if self.bias is None else y + self.bias


class MLP(nn.Module):
    """A small feed-forward network, applied to each token separately.

    Args:
        n_embd: the embedding width C.
        dropout: the share of output entries that is dropped in training.
        bias: whether the linear layers have a bias.
    """

    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Widen each embedding, apply GELU, and narrow it again.

        Args:
            x: embeddings, shape (B, T, C).

        Returns:
            Shape (B, T, C).
        """
        return self.dropout(self.c_proj(gelu(self.c_fc(x))))


class Block(nn.Module):
    """A transformer block of GPT-2: attention, then the MLP, each with a residual connection.

    Args:
        n_embd: the embedding width C.
        n_head: the number of heads; it divides C.
        dropout: the dropout rate of attn and mlp; nothing else is dropped.
        bias: whether linear layers and norms have a bias.
    """

    def __init__(
        self, n_embd: int = 768, n_head: int = 12, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout=dropout, causal=True, bias=bias)
        self.ln_2 = LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        """Add the output of the attention to every token, then that of the MLP.

        Args:
            x: embeddings, shape (B, T, C).

        Returns:
            Shape (B, T, C).
        """
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))
