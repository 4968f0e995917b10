"""Write into buffers for all positions in generate, and mask the unused positions."""

from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


def kv_cache_bytes(n_layer, n_embd, seq_len, batch_size=1, bytes_per_number=2):
    return 2 * n_layer * batch_size * seq_len * n_embd * bytes_per_number


class CachedAttention(nn.Module):
    def __init__(self, n_embd=768, n_head=12, bias=True):
        super().__init__()
        self.n_head = n_head
        self.head_dim = n_embd // n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def heads(self, x):
        B, t, C = x.shape
        qkv = self.c_attn(x).view(B, t, 3, self.n_head, self.head_dim)
        return qkv.permute(2, 0, 3, 1, 4).unbind(0)

    def joined(self, y):
        return self.c_proj(y.transpose(1, 2).flatten(2))

    def forward(self, x, past=None):
        q, k, v = self.heads(x)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        t, n = q.size(2), k.size(2)
        mask = torch.ones(t, n, dtype=torch.bool, device=x.device).tril(n - t)
        return self.joined(F.scaled_dot_product_attention(q, k, v, mask)), (k, v)

    def step(self, x, buffers, place):
        """Process one token at this position. The buffers have room for all positions."""
        q, k, v = self.heads(x)
        buffers[0][:, :, place] = k[:, :, 0]
        buffers[1][:, :, place] = v[:, :, 0]
        seen = torch.arange(buffers[0].size(2), device=x.device) <= place
        return self.joined(F.scaled_dot_product_attention(q, *buffers, attn_mask=seen[None]))


@dataclass
class GPTConfig:
    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    dropout: float = 0.0
    bias: bool = True


class MLP(nn.Module):
    def __init__(self, n_embd, bias=True):
        super().__init__()
        self.c_fc = nn.Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = nn.Linear(4 * n_embd, n_embd, bias=bias)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, n_embd, n_head, bias=True):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd, bias=bias)
        self.attn = CachedAttention(n_embd, n_head, bias)
        self.ln_2 = nn.LayerNorm(n_embd, bias=bias)
        self.mlp = MLP(n_embd, bias)

    def forward(self, x, past=None):
        y, present = self.attn(self.ln_1(x), past)
        x = x + y
        return x + self.mlp(self.ln_2(x)), present


class CachedGPT(nn.Module):
    def __init__(self, config):
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

    def forward(self, idx, past=None):
        B, t = idx.shape
        if past is None:
            past = [None] * self.config.n_layer
            n_past = 0
        else:
            n_past = past[0][0].size(2)
        if n_past + t > self.config.n_positions:
            raise ValueError(f"{n_past + t} tokens are more than {self.config.n_positions}")

        pos = torch.arange(n_past, n_past + t, device=idx.device)
        x = self.transformer["wte"](idx) + self.transformer["wpe"](pos)
        presents = []
        for block, layer_past in zip(self.transformer["h"], past):
            x, present = block(x, layer_past)
            presents.append(present)
        x = self.transformer["ln_f"](x)
        return self.lm_head(x), presents

    @torch.no_grad()
    def generate(self, idx, max_new_tokens):
        (B, T), config = idx.shape, self.config
        if T + max_new_tokens > config.n_positions:
            raise ValueError("too long")
        if max_new_tokens == 0:
            return idx.clone()
        logits, past = self(idx)
        room = (B, config.n_head, config.n_positions, config.n_embd // config.n_head)
        buffers = [[each.new_zeros(room) for each in kv] for kv in past]
        for pair, kv in zip(buffers, past):
            for buffer, each in zip(pair, kv):
                buffer[:, :, :T] = each
        out = [idx, logits[:, -1:].argmax(-1)]
        for place in range(T, T + max_new_tokens - 1):
            out.append(self.step(out[-1], buffers, place).argmax(-1))
        return torch.cat(out, 1)

    def step(self, token, buffers, place):
        parts = self.transformer
        x = parts.wte(token) + parts.wpe.weight[place]
        for block, pair in zip(parts.h, buffers):
            x = x + block.attn.step(block.ln_1(x), pair, place)
            x = x + block.mlp(block.ln_2(x))
        return self.lm_head(parts.ln_f(x))
