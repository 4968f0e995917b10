"""Update the softmax with one key at a time, as fast attention kernels do."""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.value = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        largest = torch.full_like(q[..., :1], float("-inf"))
        total = torch.zeros_like(largest)
        output = torch.zeros_like(q)
        for key, value in zip(k.unbind(1), v.unbind(1)):
            score = (q * key.unsqueeze(1)).sum(-1, keepdim=True)
            new_largest = torch.maximum(largest, score)
            shrink, weight = (largest - new_largest).exp(), (score - new_largest).exp()
            total = total * shrink + weight
            output = output * shrink + weight * value.unsqueeze(1)
            largest = new_largest
        return output / total
