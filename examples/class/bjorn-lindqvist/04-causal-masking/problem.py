import torch
from torch import nn


def causal_mask(seq_len, device=None):
    position = torch.arange(seq_len, device=device)
    return position.unsqueeze(1) >= position


def masked_softmax(scores, mask):
    return torch.where(mask, scores, -torch.inf).softmax(-1)


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.register_buffer("mask", causal_mask(n_positions))

    def forward(self, x):
        B, T, C = x.shape
        if not T <= self.mask.shape[0]:
            raise ValueError(f"{T} tokens are too many")
        q = self.query(x) * C**-0.5
        weights = masked_softmax(torch.einsum("btc,bsc->bts", q, self.key(x)), self.mask[:T, :T])
        return torch.einsum("bts,bsc->btc", weights, self.value(x))
