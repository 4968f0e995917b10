"""Problem 07, reference solution."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class GPTConfig:
    """The sizes of a model; the defaults are those of the smallest GPT-2.

    Attributes:
        vocab_size: the number of different tokens.
        n_positions: the longest sequence that the model can read at once.
        n_embd: the embedding width C.
        n_layer: the number of blocks.
        n_head: the number of heads in each block.
        dropout: the rate at which entries are dropped in training.
        bias: whether the blocks' linear layers and all layer norms have a bias.
    """

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class CausalSelfAttention(nn.Module):
    """The attention of problem 05, computed by PyTorch's own function."""

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
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Let each token attend to itself and to earlier tokens: (B, T, C) -> (B, T, C)."""
        heads = self.c_attn(x).unflatten(-1, (3, self.n_head, -1))  # (B, T, 3, n_head, head_dim)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_dim)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, dropout_p=dropout)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).flatten(2)))


class MLP(nn.Module):
    """The feed-forward network of problem 06, applied to each token separately."""

    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to each token: (B, T, C) -> (B, T, C)."""
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    """The block of problem 06: attention, then the MLP, each added to its input."""

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout=dropout, causal=True, bias=bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        """Apply both parts: (B, T, C) -> (B, T, C)."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """A language model, which computes the logits of the next token.

    Args:
        config: the sizes of the model.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        sizes = (config.n_embd, config.n_head, config.dropout, config.bias)
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.n_positions, config.n_embd),
                "drop": nn.Dropout(config.dropout),
                "h": nn.ModuleList(Block(*sizes) for _ in range(config.n_layer)),
                "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight  # shared by input and output
        self.apply(self._start)
        # Each block adds to the residual stream twice. Smaller weights limit its growth.
        for name, weight in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(weight, std=0.02 / math.sqrt(2 * config.n_layer))

    def _start(self, module: nn.Module) -> None:
        """Initialize the weights of a layer."""
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return the logits of the next token at every position, and the loss.

        Args:
            idx: tokens, int64, shape (B, T).
            targets: the tokens that come next, int64, shape (B, T); a target of -100 doesn't count.

        Returns:
            Logits, shape (B, T, vocab_size), and the mean cross entropy, or None without targets.

        Raises:
            ValueError: T is more than n_positions.
        """
        seq_len, longest = idx.shape[1], self.config.n_positions
        if seq_len > longest:
            raise ValueError(f"{seq_len} tokens are more than n_positions={longest}")
        places = torch.arange(seq_len, device=idx.device)
        x = self.transformer["wte"](idx) + self.transformer["wpe"](places)  # (B, T, C)
        x = self.transformer["drop"](x)
        for block in self.transformer["h"]:
            x = block(x)
        logits = self.lm_head(self.transformer["ln_f"](x))  # (B, T, vocab_size)
        if targets is None:
            return logits, None
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        return logits, loss

    @torch.no_grad()
    def generate(self, idx: Tensor, max_new_tokens: int) -> Tensor:
        """Continue each sequence with the most probable token, again and again.

        Args:
            idx: prompts, int64, shape (B, T).
            max_new_tokens: the number of tokens to add.

        Returns:
            Prompts and new tokens, int64, shape (B, T + max_new_tokens).
        """
        was_training = self.training
        self.eval()
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -self.config.n_positions :])
            following = logits[:, -1].argmax(-1, keepdim=True)  # (B, 1)
            idx = torch.cat([idx, following], dim=1)
        self.train(was_training)
        return idx


def get_batch(
    data: Tensor, n_positions: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Draw random pieces of a text, and the pieces that start one token later.

    Args:
        data: the tokens of a text, int64, shape (N,).
        n_positions: the length of each piece.
        batch_size: the number of pieces.
        generator: the source of all random numbers; None means torch's global generator.

    Returns:
        x and y, each int64, shape (batch_size, n_positions): y[b, t] is the token after x[b, t].

    Raises:
        ValueError: the text is too short for one piece and the token after it.
    """
    n_starts = len(data) - n_positions
    if n_starts < 1:
        raise ValueError(f"{len(data)} tokens are too few for n_positions={n_positions}")
    starts = torch.randint(n_starts, (batch_size, 1), generator=generator)
    pieces = data[starts + torch.arange(n_positions + 1)]  # (batch_size, n_positions + 1)
    return pieces[:, :-1], pieces[:, 1:]


def bigram_loss(data: Tensor, vocab_size: int) -> float:
    """Return the mean cross entropy of the best model that sees only the previous token.

    Args:
        data: the tokens of a text, int64, shape (N,).
        vocab_size: the number of different tokens.

    Returns:
        The mean over all tokens except the first, in nats.
    """
    counts = torch.zeros(vocab_size, vocab_size, dtype=torch.float64)
    before, after = data[:-1], data[1:]
    one = counts.new_ones(()).expand(len(before))
    counts.index_put_((before, after), one, accumulate=True)
    shares = counts[before, after] / counts.sum(1)[before]
    return -shares.log().mean().item()
