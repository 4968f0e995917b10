import torch
from torch import nn


class SimpleAttention(nn.Module):
    def __init__(self, n_embd=768, bias=True):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd, bias)
        self.key = nn.Linear(n_embd, n_embd, bias)
        self.value = nn.Linear(n_embd, n_embd, bias)

    def forward(self, x):
        scores = torch.einsum("bic,bjc->bij", self.query(x), self.key(x))
        return torch.einsum("bij,bjc->bic", scores.softmax(dim=2), self.value(x))
