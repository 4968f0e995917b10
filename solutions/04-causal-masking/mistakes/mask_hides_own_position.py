"""the causal mask hides each position from itself

May a token look at itself? Write down the first row of your mask and see what is left for the
first token.

Weighs: idea.
"""

import torch
import torch.nn as nn


def causal_mask(seq_len, device=None):
    i = torch.arange(seq_len, device=device)
    return i[None, :] < i[:, None]


def masked_softmax(scores, mask):
    hidden = torch.finfo(scores.dtype).min
    return torch.where(mask, scores, hidden).softmax(dim=-1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd: int = 768, n_positions: int = 1024, bias: bool = True):
        super().__init__()
        self.n_embd = n_embd
        self.n_positions = n_positions
        self.query = nn.Linear(n_embd, n_embd, bias)
        self.key = nn.Linear(n_embd, n_embd, bias)
        self.value = nn.Linear(n_embd, n_embd, bias)
        self.register_buffer("mask", causal_mask(n_positions), persistent=False)

    def forward(self, x):
        seq_len = x.shape[1]
        n_positions = self.mask.shape[0]
        if seq_len > n_positions:
            raise ValueError("at most %d tokens" % n_positions)
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = torch.einsum("bid,bjd->bij", q, k) * k.shape[-1] ** -0.5
        attn = masked_softmax(scores, causal_mask(seq_len, x.device))
        return torch.einsum("bij,bjd->bid", attn, v)
