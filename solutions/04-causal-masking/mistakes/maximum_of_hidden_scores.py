"""a hidden score still sets the size of its row: the mask comes after exp, and each row is divided by
what is left of it

For small scores this is right. Now let a hidden score be 1000 larger than the others: what does exp
give for those that remain, and what are they divided by?
"""

import torch
import torch.nn as nn


def causal_mask(seq_len, device=None):
    return torch.tril(torch.ones(seq_len, seq_len, dtype=torch.bool, device=device))


def masked_softmax(scores, mask):
    top = scores.max(dim=-1, keepdim=True).values
    exps = torch.exp(scores - top) * mask
    return exps / exps.sum(dim=-1, keepdim=True)


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        T = x.size(1)
        if T > len(self.mask):
            raise ValueError("sequence is longer than n_positions")
        q = self.query(x) / x.size(-1) ** 0.5
        att = torch.bmm(q, self.key(x).mT)
        att = masked_softmax(att, self.mask[None, :T, :T].bool())
        return torch.bmm(att, self.value(x))
