"""Compute one entry at a time, in loops over indices. Each entry is a tensor."""

import torch


def dot_product_similarity(q, k):
    if q.dim() > 2:
        return torch.stack([dot_product_similarity(a, b) for a, b in zip(q, k)])
    scores = []
    for query in q:
        row = []
        for key in k:
            total = query[0] * key[0]
            for i in range(1, len(query)):
                total = total + query[i] * key[i]
            row.append(total)
        scores.append(torch.stack(row))
    return torch.stack(scores)


def softmax(x, dim=-1):
    if dim < 0:
        dim += x.dim()
    pieces = [x.select(dim, i) for i in range(x.shape[dim])]
    largest = pieces[0]
    for piece in pieces[1:]:
        largest = torch.maximum(largest, piece)
    exps = [torch.exp(piece - largest) for piece in pieces]
    total = exps[0]
    for e in exps[1:]:
        total = total + e
    return torch.stack([e / total for e in exps], dim)
