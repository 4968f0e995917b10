"""In forward, use one key at a time, with a running maximum and sum. masked_softmax uses logsumexp.

This is less exact for large scores, as they and their logsumexp are rounded before the subtraction.
"""

import torch
from torch import nn


def causal_mask(seq_len, device=None):
    # The running sum of the identity is 1 on and below the diagonal.
    return torch.eye(seq_len, device=device).cumsum(dim=0).bool()


def masked_softmax(scores, mask):
    scores = scores.masked_fill(mask.logical_not(), -torch.inf)
    return torch.exp(scores - scores.logsumexp(dim=-1, keepdim=True))


class CausalAttention(nn.Module):
    def __init__(self, n_embd=768, n_positions=1024, bias=True):
        super().__init__()
        linear = {"in_features": n_embd, "out_features": n_embd, "bias": bias}
        self.query, self.key, self.value = (
            nn.Linear(**linear),
            nn.Linear(**linear),
            nn.Linear(**linear),
        )
        self.register_buffer("mask", causal_mask(n_positions).to(torch.int8))

    @property
    def n_positions(self):
        return self.mask.shape[-1]

    def forward(self, x):
        *_, seq_len, n_embd = x.shape
        if seq_len > self.n_positions:
            raise ValueError(f"{seq_len} tokens, but n_positions is {self.n_positions}")
        queries = self.query(x) / n_embd**0.5
        keys, values = self.key(x).unbind(dim=1), self.value(x).unbind(dim=1)
        largest = x.new_full((*x.shape[:-1], 1), -torch.inf)
        total, output = 0, 0
        for j, (key, value) in enumerate(zip(keys, values)):
            scores = queries @ key.unsqueeze(-1)
            scores = torch.where(self.mask[:seq_len, j, None] == 1, scores, -torch.inf)
            before, largest = largest, torch.maximum(largest, scores).detach()
            shrink, power = torch.exp(before - largest), torch.exp(scores - largest)
            total = total * shrink + power
            output = output * shrink + power * value.unsqueeze(1)
        return output / total
