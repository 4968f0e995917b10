"""The logarithm of the mask as a bias, 0 or -inf, then exp of log_softmax."""

import torch
from torch import nn


def causal_mask(seq_len, device=None):
    return torch.tensor([[j <= i for j in range(seq_len)] for i in range(seq_len)], device=device)


def masked_softmax(scores, mask):
    return torch.log_softmax(scores + mask.to(scores.dtype).log(), dim=-1).exp()


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.register_buffer("mask", causal_mask(n_positions).to(torch.long))
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        T = x.shape[1]
        if T > self.mask.shape[0]:
            raise ValueError("too many tokens")
        q, k, v = (layer(x) for layer in (self.query, self.key, self.value))
        scores = torch.tensordot(q, k, dims=([2], [2])).diagonal(dim1=0, dim2=2).permute(2, 0, 1)
        scores = scores / q.new_tensor(q.shape[-1]).sqrt()
        return masked_softmax(scores, self.mask[:T, :T] > 0) @ v
