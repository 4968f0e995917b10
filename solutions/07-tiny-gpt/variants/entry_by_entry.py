"""Loop over positions and tokens, compute the loss with logsumexp, and count with Counter."""

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
        super(GPT, self).__init__()
        self.config = config
        self.transformer = nn.ModuleDict()
        self.transformer["wte"] = nn.Embedding(config.vocab_size, config.n_embd)
        self.transformer["wpe"] = nn.Embedding(config.n_positions, config.n_embd)
        self.transformer["drop"] = nn.Dropout(config.dropout)
        blocks = [
            Block(config.n_embd, config.n_head, config.dropout, config.bias)
            for i in range(config.n_layer)
        ]
        self.transformer["h"] = nn.ModuleList(blocks)
        self.transformer["ln_f"] = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        torch.nn.init.trunc_normal_(self.lm_head.weight, std=0.02)
        self.transformer["wte"].weight = self.lm_head.weight
        torch.nn.init.normal_(self.transformer["wpe"].weight, std=0.02)
        for block in blocks:
            for layer in (block.attn.c_attn, block.mlp.c_fc, block.attn.c_proj, block.mlp.c_proj):
                torch.nn.init.normal_(layer.weight, std=0.02)
                if config.bias:
                    torch.nn.init.constant_(layer.bias, 0)
            for layer in (block.attn.c_proj, block.mlp.c_proj):
                layer.weight = nn.Parameter(layer.weight.detach() / math.sqrt(2 * config.n_layer))

    def embed(self, idx):
        x = torch.zeros(*idx.shape, self.config.n_embd, dtype=self.lm_head.weight.dtype)
        rows = []
        for t in range(idx.shape[1]):
            rows.append(self.lm_head.weight[idx[:, t]] + self.transformer["wpe"].weight[t])
        return torch.stack(rows, dim=1) + x

    def forward(self, idx, targets=None):
        if idx.shape[1] > self.config.n_positions:
            raise ValueError
        x = self.transformer["drop"](self.embed(idx))
        for i in range(self.config.n_layer):
            x = self.transformer["h"][i](x)
        logits = self.transformer["ln_f"](x) @ self.transformer["wte"].weight.T
        loss = None
        if targets is not None:
            total, count = 0, 0
            for b in range(idx.shape[0]):
                for t in range(idx.shape[1]):
                    if targets[b, t] != -100:
                        total = (
                            total + torch.logsumexp(logits[b, t], 0) - logits[b, t, targets[b, t]]
                        )
                        count += 1
            loss = total / count
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        training = self.training
        try:
            self.train(False)
            new = torch.empty(idx.shape[0], idx.shape[1] + max_new_tokens, dtype=torch.long)
            new[:, : idx.shape[1]] = idx
            for t in range(idx.shape[1], new.shape[1]):
                context = new[:, max(0, t - self.config.n_positions) : t]
                new[:, t] = self(context)[0][:, -1].sort(descending=True, stable=True).indices[:, 0]
            return new
        finally:
            self.train(training)


def get_batch(data, n_positions, batch_size, generator=None):
    possible = range(len(data) - n_positions)
    if not possible:
        raise ValueError("too short a text")
    x = torch.zeros(batch_size, n_positions, dtype=torch.int64)
    y = torch.zeros_like(x)
    for b in range(batch_size):
        i = possible[int(torch.randint(0, len(possible), [], generator=generator))]
        for t in range(n_positions):
            x[b, t] = data[i + t]
            y[b, t] = data[i + t + 1]
    return x, y


def bigram_loss(data, vocab_size):
    from collections import Counter

    data = data.tolist()
    pairs = Counter(zip(data, data[1:]))
    firsts = Counter(data[:-1])
    losses = [-math.log(pairs[a, b] / firsts[a]) for a, b in zip(data, data[1:])]
    return sum(losses) / len(losses)
