"""Flatten leading dimensions for bmm. Use log_softmax. The module does not call the function."""

import torch
import torch.nn as nn
import torch.nn.functional as F


def scaled_dot_product_attention(q, k, v):
    n, d_k = q.shape[-2:]
    m, d_v = v.shape[-2:]
    leading = q.shape[:-2]
    q, k, v = q.reshape(-1, n, d_k), k.reshape(-1, m, d_k), v.reshape(-1, m, d_v)
    weights = torch.bmm(q, k.transpose(1, 2)).mul(d_k**-0.5).log_softmax(dim=2).exp()
    return torch.bmm(weights, v).reshape(*leading, n, d_v)


class ScaledAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.n_embd = n_embd
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.query(x), self.key(x), self.value(x)
        att = torch.baddbmm(x.new_zeros(B, T, T), q, k.transpose(1, 2), alpha=C**-0.5)
        return F.softmax(att, dim=-1) @ v


def dot_product_variance(d_k, n_pairs, scaled, generator=None):
    numbers = torch.randn(2 * n_pairs * d_k, generator=generator)
    q, k = numbers.view(2, n_pairs, d_k).unbind(0)
    dots = (q.unsqueeze(1) @ k.unsqueeze(2)).flatten()
    mean_square, mean = dots.double().square().mean(), dots.double().mean()
    return (mean_square - mean**2).item() / (d_k if scaled else 1)
