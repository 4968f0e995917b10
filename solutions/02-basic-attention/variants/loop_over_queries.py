"""One sequence and one query at a time, collected in lists and stacked."""

import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd: int = 768, bias: bool = True):
        super().__init__()
        self.value = nn.Linear(n_embd, n_embd, bias=bias)
        self.key = nn.Linear(n_embd, n_embd, bias=bias)
        self.query = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x):
        outputs = []
        for sequence in x:
            keys, values = self.key(sequence), self.value(sequence)
            rows = []
            for position in sequence:
                scores = keys @ self.query(position)
                rows.append(torch.softmax(scores, dim=0) @ values)
            outputs.append(torch.stack(rows))
        return torch.stack(outputs)
