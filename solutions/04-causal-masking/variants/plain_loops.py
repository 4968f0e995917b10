"""Loop over batch, rows and positions, without broadcasting and batched products."""

import math

import torch
from torch import nn


def causal_mask(seq_len, device=None):
    mask = torch.zeros(seq_len, seq_len, dtype=torch.bool, device=device)
    for i in range(seq_len):
        for j in range(seq_len):
            if j <= i:
                mask[i, j] = True
    return mask


def masked_softmax(scores, mask):
    allowed = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
    rows = []
    for row, may in zip(scores.reshape(-1, scores.shape[-1]), allowed):
        weights = torch.zeros_like(row)
        weights[may] = torch.softmax(row[may], dim=0)
        rows.append(weights)
    return torch.stack(rows).reshape(scores.shape)


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        self.n_positions = n_positions
        for name in ["key", "query", "value"]:
            setattr(self, name, nn.Linear(n_embd, n_embd, bias=bias))
        self.register_buffer("mask", causal_mask(n_positions).int(), persistent=False)

    def forward(self, x):
        batch_size, seq_len, n_embd = x.shape
        if seq_len > self.n_positions:
            raise ValueError("too long")
        outputs = []
        for sequence in x:
            q, k, v = self.query(sequence), self.key(sequence), self.value(sequence)
            gathered = []
            for t in range(seq_len):
                scores = torch.stack(
                    [torch.dot(q[t], k[s]) / math.sqrt(n_embd) for s in range(t + 1)]
                )
                weights = torch.softmax(scores, dim=0)
                gathered.append(sum(w * v[s] for s, w in enumerate(weights)))
            outputs.append(torch.stack(gathered))
        return torch.stack(outputs)
