"""Problem 06: the transformer block of GPT-2, and the parts that it is made of.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch  # noqa: F401  (you will need it)
import torch.nn.functional as F
from torch import Tensor, nn

# Do not call PyTorch's gelu, its norms (layer, group, instance, batch, rms) or
# TransformerEncoderLayer. You may call mean, var, std, var_mean and tanh.


class CausalSelfAttention(nn.Module):
    """Given: the attention of problem 05, computed by PyTorch's own function.

    It has the arguments of the class that you wrote in problem 05. Those after n_head are passed by
    name. You may use your class instead; pass causal=True to it.

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
    # TODO: the formula is in the README.
    raise NotImplementedError


class LayerNorm(nn.Module):
    """Normalises each token to mean 0 and variance 1, then applies a learned scale and shift.

    Args:
        n_embd: the number of entries of a token.
        bias: whether there is a bias.
        eps: a number that is added to the variance, so that nothing is divided by 0.

    Attributes:
        weight: nn.Parameter, (n_embd,), initially ones.
        bias: nn.Parameter, (n_embd,), initially zeros; None if there is no bias.
    """

    def __init__(self, n_embd: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        # TODO: make the attributes listed above, and keep eps for forward.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Normalise over the last dimension.

        Args:
            x: embeddings, shape (..., n_embd).

        Returns:
            A tensor of the same shape.
        """
        # TODO: mean and population variance of each row; then weight and bias.
        raise NotImplementedError


class MLP(nn.Module):
    """A small feed-forward network, applied to each token separately.

    Args:
        n_embd: the embedding width C.
        dropout: the rate at which output entries are dropped in training; below 1.
        bias: whether the linear layers have a bias.

    Attributes:
        c_fc: nn.Linear, n_embd -> 4 * n_embd.
        c_proj: nn.Linear, 4 * n_embd -> n_embd.
        dropout: nn.Dropout, for the output.
    """

    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        # TODO: make the attributes listed above.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Widen each embedding, apply GELU, and narrow it again.

        Args:
            x: embeddings, shape (B, T, C).

        Returns:
            Shape (B, T, C).
        """
        # TODO: c_fc, gelu, c_proj, dropout.
        raise NotImplementedError


class Block(nn.Module):
    """A transformer block of GPT-2: attention, then the MLP, each with a residual connection.

    Args:
        n_embd: the embedding width C.
        n_head: the number of heads; it divides C.
        dropout: the dropout rate of attn and mlp; nothing else is dropped.
        bias: whether linear layers and norms have a bias.

    Attributes:
        ln_1: LayerNorm, before the attention.
        attn: CausalSelfAttention.
        ln_2: LayerNorm, before the MLP.
        mlp: MLP.
    """

    def __init__(
        self, n_embd: int = 768, n_head: int = 12, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        # TODO: make the attributes listed above.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Add the output of the attention to every token, then that of the MLP.

        Args:
            x: embeddings, shape (B, T, C).

        Returns:
            Shape (B, T, C).
        """
        # TODO: two steps; each adds to x the output of a part for the normalised x.
        raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
