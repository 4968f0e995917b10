"""Process keys in blocks of three. Update the largest score, the sum and the average."""

import torch
from torch import nn


def split_heads(x, n_head):
    return x.reshape(*x.shape[:-1], n_head, -1).movedim(-2, 1)


def merge_heads(x):
    return torch.hstack([part.mT for part in x.unbind(1)]).mT


class MultiHeadAttention(nn.Module):
    BLOCK = 3

    def __init__(self, n_embd=768, n_head=12, dropout=0.0, causal=False, bias=True):
        super().__init__()
        if n_head < 1:
            raise ValueError("no heads")
        self.head_dim, rest = divmod(n_embd, n_head)
        if rest:
            raise ValueError("the heads can't all be of the same width")
        self.n_embd = n_embd
        self.n_head = n_head
        self.causal = causal
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)
        self.attn_dropout = nn.Dropout(dropout)
        self.resid_dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (split_heads(part, self.n_head) for part in self.c_attn(x).chunk(3, -1))
        q = q * self.head_dim**-0.5
        largest = q.new_full((*q.shape[:-1], 1), -torch.inf)
        total, average = torch.zeros_like(largest), torch.zeros_like(q)
        rows = torch.arange(q.shape[2])[:, None]
        for start in range(0, k.shape[2], self.BLOCK):
            block = slice(start, start + self.BLOCK)
            scores = q @ k[:, :, block].mT
            if self.causal:
                scores = scores.masked_fill(torch.arange(k.shape[2])[block] > rows, -torch.inf)
            before, largest = largest, torch.maximum(largest, scores.amax(-1, keepdim=True))
            largest = largest.detach()  # the result does not depend on it
            powers = torch.exp(scores - largest)
            shrunk = torch.exp(before - largest)
            total = total * shrunk + powers.sum(-1, keepdim=True)
            average = average * shrunk + self.attn_dropout(powers) @ v[:, :, block]
        return self.resid_dropout(self.c_proj(merge_heads(average / total)))
