"""causal_mask returns the numbers to add to the scores, 0 and -inf, rather than a bool tensor

Adding 0 or -inf is a good way to mask, but it belongs in masked_softmax. What does the task say
that causal_mask returns?
"""

import torch
import torch.nn as nn


def causal_mask(seq_len, device=None):
    mask = torch.full((seq_len, seq_len), float("-inf"), device=device)
    return torch.triu(mask, diagonal=1)


def masked_softmax(scores, mask):
    if mask.dtype == torch.bool:
        return scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return (scores + mask.to(scores.dtype)).softmax(-1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions))

    def forward(self, x):
        seq_len = x.shape[1]
        n_positions = self.mask.shape[0]
        if seq_len > n_positions:
            raise ValueError("at most %d tokens" % n_positions)
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = torch.einsum("bid,bjd->bij", q, k) * k.shape[-1] ** -0.5
        attn = masked_softmax(scores, causal_mask(seq_len, x.device))
        return torch.einsum("bij,bjd->bid", attn, v)
