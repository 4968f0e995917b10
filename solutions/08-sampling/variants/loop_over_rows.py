"""Process one row at a time in a Python loop."""

import torch


def apply_temperature(logits, temperature):
    if temperature <= 0:
        raise ValueError("temperature must be > 0")
    return logits / temperature


def for_each_row(function, logits):
    if logits.dim() == 1:
        return function(logits)
    return torch.stack([for_each_row(function, row) for row in logits])


def keep_top_k(logits, k):
    if k < 1:
        raise ValueError("k must be >= 1")

    def one_row(row):
        numbers = sorted(row.tolist(), reverse=True)
        smallest = numbers[min(k, len(numbers)) - 1]
        return torch.where(row >= smallest, row, torch.tensor(float("-inf"), dtype=row.dtype))

    return for_each_row(one_row, logits)


def keep_top_p(logits, p):
    if p <= 0 or p > 1:
        raise ValueError("p must be in (0, 1]")
    if p == 1:
        return logits

    def one_row(row):
        probabilities = torch.softmax(row, dim=0).tolist()
        order = sorted(range(len(probabilities)), key=lambda i: probabilities[i], reverse=True)
        keep, total = [False] * len(order), 0.0
        for i in order:
            keep[i] = True
            total += probabilities[i]
            if total >= p:
                break
        return row.masked_fill(~torch.tensor(keep), float("-inf"))

    return for_each_row(one_row, logits)


def sample(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    if temperature < 0:
        raise ValueError("temperature must be >= 0")
    if temperature == 0:
        return for_each_row(lambda row: torch.tensor(row.tolist().index(max(row.tolist()))), logits)
    logits = apply_temperature(logits, temperature)
    if top_k is not None:
        logits = keep_top_k(logits, top_k)
    if top_p is not None:
        logits = keep_top_p(logits, top_p)

    def draw(row):
        return torch.multinomial(torch.softmax(row, dim=-1), 1, generator=generator)[0]

    return for_each_row(draw, logits)
