import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Given.


@dataclass
class GPTConfig:
    """The sizes of a model; the defaults are those of the smallest GPT-2.

    Attributes:
        vocab_size: the number of different tokens.
        n_positions: the longest sequence that the model can read at once.
        n_embd: the embedding width C.
        n_layer: the number of blocks.
        n_head: the number of heads in each block.
        dropout: the share that is dropped in training.
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
    """Problem 05's attention, causal, by PyTorch's own function."""

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Let each token attend to itself and to earlier ones: (B, T, C) -> (B, T, C)."""
        heads = self.c_attn(x).unflatten(-1, (3, self.n_head, -1))  # (B, T, 3, n_head, head_dim)
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # each (B, n_head, T, head_dim)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).flatten(2)))


class MLP(nn.Module):
    """Problem 06's small network, which works on every token by itself."""

    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Let every token think: (B, T, C) -> (B, T, C)."""
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    """Problem 06's block: attention, then the small network, each added to what came in."""

    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C) -> (B, T, C)."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Tokens and positions in, blocks, a last norm, and scores for the next token out."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        sizes = config.n_embd, config.n_head, config.dropout, config.bias
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(config.vocab_size, config.n_embd),
                wpe=nn.Embedding(config.n_positions, config.n_embd),
                drop=nn.Dropout(config.dropout),
                h=nn.ModuleList(Block(*sizes) for _ in range(config.n_layer)),
                ln_f=nn.LayerNorm(config.n_embd, bias=config.bias),
            )
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
        for name, parameter in self.named_parameters():
            self._start(name, parameter)

    def _start(self, name: str, parameter: Tensor) -> None:
        if "ln_" in name:
            return  # ones and zeros already
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            # Each block adds twice to the residual path; so it starts as wide, however deep.
            last = name.endswith("c_proj.weight")
            std = 0.02 / math.sqrt(2 * self.config.n_layer) if last else 0.02
            nn.init.normal_(parameter, std=std)

    def forward(self, idx: Tensor, targets: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        length = idx.shape[1]
        if length > self.config.n_positions:
            raise ValueError(f"{length} tokens are more than {self.config.n_positions}")
        parts = self.transformer
        positions = parts.wpe(torch.arange(length, device=idx.device))  # (T, C), for every row
        x = parts.drop(parts.wte(idx) + positions)
        for block in parts.h:
            x = block(x)
        logits = self.lm_head(parts.ln_f(x))  # (B, T, vocab_size)
        if targets is None:
            return logits, None
        # cross_entropy wants the classes second, and leaves -100 out by itself.
        return logits, F.cross_entropy(logits.transpose(1, 2), targets)

    @torch.no_grad()
    def generate(self, idx: Tensor, max_new_tokens: int) -> Tensor:
        was_training = self.training
        self.eval()
        for _ in range(max_new_tokens):
            logits, _ = self(idx[:, -self.config.n_positions :])
            idx = torch.cat([idx, logits[:, -1].argmax(-1, keepdim=True)], dim=1)
        self.train(was_training)
        return idx


def get_batch(
    data: Tensor, n_positions: int, batch_size: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    starts = len(data) - n_positions
    if starts < 1:
        raise ValueError(f"{len(data)} tokens are too few for {n_positions} and one more")
    first = torch.randint(starts, (batch_size, 1), generator=generator)
    places = first + torch.arange(n_positions)  # (batch_size, n_positions)
    return data[places], data[places + 1]


def bigram_loss(data: Tensor, vocab_size: int) -> float:
    pairs = torch.bincount(data[:-1] * vocab_size + data[1:], minlength=vocab_size**2)
    counts = pairs.view(vocab_size, vocab_size).double()
    share = counts / counts.sum(1, keepdim=True)
    return -share[data[:-1], data[1:]].log().mean().item()
