"""Use short names, a bare nn.Module, weights set through .data, and windows by unfold."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class GPTConfig:
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class CausalSelfAttention(nn.Module):
    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.n_head = n_head
        self.dropout = dropout
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.c_attn(x).unflatten(-1, (3, self.n_head, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).flatten(2)))


class MLP(nn.Module):
    def __init__(self, n_embd: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.gelu = nn.GELU(approximate="tanh")
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, n_embd: int, n_head: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, dropout, bias)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        c = self.config = config
        self.transformer = nn.Module()
        self.transformer.wte = nn.Embedding(c.vocab_size, c.n_embd)
        self.transformer.wpe = nn.Embedding(c.n_positions, c.n_embd)
        self.transformer.drop = nn.Dropout(c.dropout)
        self.transformer.h = nn.ModuleList(
            Block(c.n_embd, c.n_head, c.dropout, c.bias) for _ in range(c.n_layer)
        )
        self.transformer.ln_f = nn.LayerNorm(c.n_embd, bias=c.bias)
        self.lm_head = nn.Linear(c.n_embd, c.vocab_size, bias=False)
        self.lm_head.weight = self.transformer.wte.weight
        for m in self.modules():
            if isinstance(m, (nn.Linear, nn.Embedding)):
                m.weight.data.normal_(0, 0.02)
            if isinstance(m, nn.Linear) and m.bias is not None:
                m.bias.data.zero_()
        for b in self.transformer.h:
            b.attn.c_proj.weight.data *= (2 * c.n_layer) ** -0.5
            b.mlp.c_proj.weight.data *= (2 * c.n_layer) ** -0.5

    def forward(self, idx, targets=None):
        T = idx.shape[1]
        if T > self.config.n_positions:
            raise ValueError("too long")
        t = self.transformer
        x = t.drop(t.wte(idx) + t.wpe.weight[:T])
        for b in t.h:
            x = b(x)
        logits = self.lm_head(t.ln_f(x))
        loss = None if targets is None else F.cross_entropy(logits.transpose(1, 2), targets)
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        mode, n = self.training, self.config.n_positions
        self.eval()
        while max_new_tokens > 0:
            new = self(idx[:, -n:])[0][:, -1].argmax(-1)
            idx = torch.hstack([idx, new[:, None]])
            max_new_tokens -= 1
        self.train(mode)
        return idx


def get_batch(data, n_positions, batch_size, generator=None):
    if data.numel() <= n_positions:
        raise ValueError("too short")
    w = data.unfold(0, n_positions + 1, 1)
    i = torch.randint(0, w.shape[0], (batch_size,), generator=generator)
    w = w[i]
    return w[:, :-1], w[:, 1:]


def bigram_loss(data, vocab_size):
    a, b = data[:-1], data[1:]
    n = (
        torch.bincount(a * vocab_size + b, minlength=vocab_size**2)
        .double()
        .view(vocab_size, vocab_size)
    )
    p = n / n.sum(1, keepdim=True)
    return F.nll_loss(p[a].log(), b).item()
