"""Subtract the maximum, compute the logarithms of the weights, and apply exp. Scores use bmm."""

import torch


def dot_product_similarity(q, k):
    *leading, n, d = q.shape
    m = k.shape[-2]
    scores = torch.bmm(q.reshape(-1, n, d), k.reshape(-1, m, d).permute(0, 2, 1))
    return scores.reshape(*leading, n, m)


def softmax(x, dim=-1):
    z = x - torch.max(x, dim, keepdim=True)[0]
    log_total = torch.log(torch.sum(torch.exp(z), dim, keepdim=True))
    return torch.exp(z - log_total)
