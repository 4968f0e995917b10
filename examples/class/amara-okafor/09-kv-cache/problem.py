from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

KeysAndValues = tuple[Tensor, Tensor]


def kv_cache_bytes(
    n_layer: int, n_embd: int, seq_len: int, batch_size: int = 1, bytes_per_number: int = 2
) -> int:
    keys_and_values = 2
    return keys_and_values * n_layer * batch_size * seq_len * n_embd * bytes_per_number


class CachedAttention(nn.Module):
    """Attention in which new tokens see all of the past, and each other up to themselves."""

    def __init__(self, n_embd: int = 768, n_head: int = 12, bias: bool = True) -> None:
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor, past: KeysAndValues | None = None) -> tuple[Tensor, KeysAndValues]:
        thirds = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (third.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for third in thirds)
        if past is not None:
            k, v = (torch.cat(both, dim=2) for both in zip(past, (k, v)))
        new, all_ = q.shape[2], k.shape[2]
        # A triangle that is moved to the right by the length of the past; is_causal would leave it
        # at the left.
        seen = torch.ones(new, all_, dtype=torch.bool, device=x.device).tril(all_ - new)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.c_proj(y.transpose(1, 2).flatten(2)), (k, v)


@dataclass
class GPTConfig:
    """The sizes of a GPT, under GPT-2's names. Given.

    Attributes:
        vocab_size: how many tokens there are.
        n_positions: how many tokens a sequence may have.
        n_embd: the embedding width C.
        n_layer: the number of blocks.
        n_head: the number of heads in each attention; it divides n_embd.
        dropout: not used here, as a cache is for text that is made, not for training.
        bias: whether the linear layers (but lm_head) and the layer norms have a bias.
    """

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class MLP(nn.Module):
    """The small network of a block. Given, with PyTorch's GELU."""

    def __init__(self, n_embd: int, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return what it makes of each token, (B, t, C)."""
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    """A transformer block whose attention has a cache. Given, with PyTorch's LayerNorm."""

    def __init__(self, n_embd: int, n_head: int, bias: bool = True) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CachedAttention(n_embd, n_head, bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, bias)

    def forward(self, x: Tensor, past: KeysAndValues | None = None) -> tuple[Tensor, KeysAndValues]:
        """Return the new x, (B, t, C), and what the attention now holds."""
        y, present = self.attn(self.ln_1(x), past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), present


class CachedGPT(nn.Module):
    """A GPT that can go on where it ended. What it is made of is given: the parts of problem 07.

    Args:
        config: its sizes.

    Attributes:
        config: as given.
        transformer: the embeddings wte and wpe, the blocks h, and the last layer norm ln_f.
        lm_head: nn.Linear without a bias, from embeddings to logits; its weight is that of wte.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        blocks = [Block(config.n_embd, config.n_head, config.bias) for _ in range(config.n_layer)]
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.n_positions, config.n_embd),
                "h": nn.ModuleList(blocks),
                "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(
        self, idx: Tensor, past: list[KeysAndValues] | None = None
    ) -> tuple[Tensor, list[KeysAndValues]]:
        known = past[0][0].shape[2] if past else 0
        end = known + idx.shape[1]
        if end > self.config.n_positions:
            raise ValueError(f"{end} tokens are more than {self.config.n_positions}")
        positions = torch.arange(known, end, device=idx.device)
        x = self.transformer["wte"](idx) + self.transformer["wpe"](positions)
        present = []
        for block, layer in zip(self.transformer["h"], past or [None] * self.config.n_layer):
            x, kept = block(x, layer)
            present.append(kept)
        return self.lm_head(self.transformer["ln_f"](x)), present

    @torch.no_grad()
    def generate(self, idx: Tensor, max_new_tokens: int) -> Tensor:
        if idx.shape[1] + max_new_tokens > self.config.n_positions:
            raise ValueError(f"text and new tokens are more than {self.config.n_positions}")
        new, past = idx, None
        for _ in range(max_new_tokens):
            logits, past = self(new, past)
            new = logits[:, -1].argmax(-1, keepdim=True)
            idx = torch.cat([idx, new], dim=1)
        return idx
