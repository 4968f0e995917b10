"""Use one class for the embeddings and blocks, and another one that generates recursively."""

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


class Transformer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_f = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.h = nn.ModuleList()
        for _ in range(config.n_layer):
            self.h.append(Block(config.n_embd, config.n_head, config.dropout, config.bias))
        self.drop = nn.Dropout(config.dropout)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.register_buffer("positions", torch.arange(config.n_positions), persistent=False)

    def forward(self, idx):
        x = self.drop(self.wpe(self.positions[: idx.shape[-1]])[None] + self.wte(idx))
        for block in self.h:
            x = block(x)
        return self.ln_f(x)


class LanguageModel(nn.Module):
    def generate(self, idx, max_new_tokens):
        if max_new_tokens == 0:
            return idx
        modes = {module: module.training for module in self.modules()}
        self.eval()
        logits, _ = self(idx[:, -self.config.n_positions :])
        for module, mode in modes.items():
            module.training = mode
        following = logits.detach()[:, -1:].argmax(2)
        return self.generate(torch.cat((idx, following), 1), max_new_tokens - 1)


class GPT(LanguageModel):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer = Transformer(config)
        self.transformer.wte.weight = self.lm_head.weight
        with torch.no_grad():
            for name, weight in self.named_parameters():
                if weight.ndim == 2:
                    size = 0.02 / math.sqrt(2 * config.n_layer) if "c_proj" in name else 0.02
                    weight.copy_(torch.randn_like(weight) * size)
                elif "bias" in name:
                    weight.zero_()

    def forward(self, idx, targets=None):
        if idx.shape[1] > self.config.n_positions:
            raise ValueError("longer than n_positions")
        logits = self.lm_head(self.transformer(idx))
        if targets is None:
            return logits, None
        B, T, V = logits.shape
        loss = nn.CrossEntropyLoss()(logits.reshape(B * T, V), targets.reshape(B * T))
        return logits, loss


def get_batch(data, n_positions, batch_size, generator=None):
    n = data.size(0)
    if n - n_positions < 1:
        raise ValueError("no piece fits")
    starts = (
        torch.rand(batch_size, generator=generator, dtype=torch.float64) * (n - n_positions)
    ).long()
    index = starts[:, None] + torch.arange(n_positions)
    return torch.take(data, index), torch.take(data, index + 1)


def bigram_loss(data, vocab_size):
    joint = F.one_hot(data[:-1], vocab_size).double().T @ F.one_hot(data[1:], vocab_size).double()
    p = joint / joint.sum(dim=1, keepdim=True).clamp(min=1)
    return -float((joint[joint > 0] * p[joint > 0].log()).sum() / joint.sum())
