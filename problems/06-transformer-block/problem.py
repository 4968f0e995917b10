"""Problem 06: the transformer block of GPT-2, and the parts that it is made of.

Run `uv run pytest` in this folder to test what you wrote here.
"""

import torch  # noqa: F401  (you will need it)
import torch.nn.functional as F
from torch import Tensor, nn

# PyTorch's own gelu, its normalisations (layer, group, instance, batch, rms) and
# TransformerEncoderLayer may not be called. mean, var, std, var_mean and tanh may.


class CausalSelfAttention(nn.Module):
    """Given: the attention that you wrote in problem 05, by PyTorch's own function.

    Its arguments are those of problem 05's class; those after n_head are passed by name. You may
    replace it by your class; pass causal=True to yours.

    Args:
        n_embd: the embedding width C.
        n_head: the number of heads; it divides C.
        dropout: the share of weights, and of output entries, that is dropped in training.
        causal: whether a token attends only to itself and earlier ones.
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
        """Let each token attend to itself and to earlier ones: (B, T, C) -> (B, T, C)."""
        thirds = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (third.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for third in thirds)
        rate = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=self.causal)
        y = self.c_proj(y.transpose(1, 2).flatten(2))  # (B, n_head, T, head_dim) -> (B, T, C)
        return F.dropout(y, self.dropout, self.training)


def gelu(x: Tensor) -> Tensor:
    """Apply the activation function of GPT-2: the GELU, in its form with tanh.

    Args:
        x: entries of any size, in any shape.

    Returns:
        The same shape.
    """
    # TODO: the formula is in the README.
    raise NotImplementedError


class LayerNorm(nn.Module):
    """Gives each token's entries mean 0 and variance 1, then a learned scale and shift.

    Args:
        n_embd: the number of entries of a token.
        bias: whether there is a bias.
        eps: is added to the variance, so that nothing is divided by 0.

    Attributes:
        weight: nn.Parameter, (n_embd,), ones at first.
        bias: nn.Parameter, (n_embd,), zeros at first; None if there is no bias.
    """

    def __init__(self, n_embd: int, bias: bool = True, eps: float = 1e-5) -> None:
        super().__init__()
        # TODO: make the attributes listed above, and keep eps for forward.
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Normalise over the last dimension.

        Args:
            x: shape (..., n_embd).

        Returns:
            The same shape.
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
        """Widen, apply GELU, narrow again.

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
        dropout: the rate for attention and MLP; there is no other dropout.
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
        # TODO: two steps; each adds the output of a part, for the normalised x, to x.
        raise NotImplementedError


if __name__ == "__main__":
    print("To test what you wrote here: uv run pytest")
