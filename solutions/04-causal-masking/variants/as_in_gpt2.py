"""Follow GPT-2's code, with a helper class and an extra dimension for one head."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def causal_mask(seq_len, device=None):
    return torch.tril(torch.ones((seq_len, seq_len), dtype=torch.bool, device=device))


def masked_softmax(scores, mask):
    weights = F.softmax(scores.masked_fill(mask == False, float("-inf")), dim=-1)
    return torch.where(mask, weights, torch.zeros_like(weights))


class Attention(nn.Module):
    def forward(self, q, k, v, mask):
        w = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(v.size(-1))
        w = masked_softmax(w, mask)
        return torch.matmul(w, v)


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.attention = Attention()
        self.register_buffer("mask", causal_mask(n_positions))
        self.register_buffer("masked_bias", torch.tensor(-1e4), persistent=False)

    def forward(self, x):
        nd, ns = x.size(-2), self.mask.size(-1)
        if nd > ns:
            raise ValueError(f"Cannot attend, sequence length {nd} > {ns}")
        q, k, v = (layer(x)[:, None] for layer in (self.query, self.key, self.value))
        return self.attention(q, k, v, self.mask[None, None, ns - nd : ns, ns - nd : ns]).squeeze(1)
