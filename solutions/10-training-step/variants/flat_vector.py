"""Apply AdamW to one vector of all parameters. The weights have the axes (..., keys, queries)."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def softmax_backward(weights, grad):
    inner = (weights.unsqueeze(-2) @ grad.unsqueeze(-1)).squeeze(-1)
    return weights * (grad - inner)


def attention_backward(q, k, v, grad, mask=None):
    # A column for each query: (..., m, n)
    scores = k @ q.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
        scores = torch.where(mask.mT, scores, -math.inf)
    weights = scores.softmax(dim=-2)
    slopes = v @ grad.mT
    slopes = weights * (slopes - (weights * slopes).sum(dim=-2, keepdim=True))
    slopes = slopes / math.sqrt(q.shape[-1])
    return slopes.mT @ k, slopes @ q, weights @ grad


def cross_entropy_backward(logits, targets):
    rows, flat = logits.flatten(0, -2), targets.flatten()
    counts = flat != -100
    tokens = torch.arange(rows.shape[-1])
    right = (flat[:, None] == tokens).to(rows.dtype)
    share = counts.to(rows.dtype)[:, None] / counts.sum()
    return ((rows.softmax(-1) - right) * share).view(logits.shape)


def clip_gradients(parameters, max_norm):
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    factor = min(1.0, max_norm / norm.item()) if norm > 0 else 1.0
    for g in gradients:
        g *= factor
    return norm.item()


def learning_rate(step, warmup, total, peak, floor):
    if step < warmup:
        return (step + 1) * peak / warmup
    if step >= total:
        return float(floor)
    angle = math.pi * (step - warmup) / (total - warmup)
    return peak - (peak - floor) * (1 - math.cos(angle)) / 2


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        if lr < 0 or eps < 0 or weight_decay < 0:
            raise ValueError("negative")
        if any(not 0 <= b < 1 for b in betas):
            raise ValueError("beta")
        self.parameters = list(parameters)
        self.sizes = [p.numel() for p in self.parameters]
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.mean = torch.zeros(sum(self.sizes), dtype=torch.float64)
        self.square = torch.zeros(sum(self.sizes), dtype=torch.float64)
        self.steps = torch.zeros(sum(self.sizes), dtype=torch.float64)

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        has = torch.cat(
            [torch.full((n,), p.grad is not None) for n, p in zip(self.sizes, self.parameters)]
        )
        grad = torch.cat(
            [
                (torch.zeros_like(p) if p.grad is None else p.grad).flatten().double()
                for p in self.parameters
            ]
        )
        old = torch.cat([p.flatten().double() for p in self.parameters])
        self.steps += has
        self.mean = torch.where(has, b1 * self.mean + (1 - b1) * grad, self.mean)
        self.square = torch.where(has, b2 * self.square + (1 - b2) * grad**2, self.square)
        mean = self.mean / (1 - b1**self.steps)
        square = self.square / (1 - b2**self.steps)
        new = old * (1 - self.lr * self.weight_decay) - self.lr * mean / (square.sqrt() + self.eps)
        new = torch.where(has, new, old)
        for p, part in zip(self.parameters, new.split(self.sizes)):
            p.copy_(part.view_as(p))

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None


def train_step(model, idx, targets, optimizer, max_norm=1.0):
    logits = model(idx)
    log_probs = logits.log_softmax(-1)
    loss = -log_probs.gather(-1, targets[..., None]).mean()
    optimizer.zero_grad()
    loss.backward()
    clip_gradients(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


def evaluate(model, batches):
    was = model.training
    try:
        model.eval()
        with torch.no_grad():
            total = 0.0
            for x, y in batches:
                total -= model(x).log_softmax(-1).gather(-1, y[..., None]).sum().item()
    finally:
        model.train(was)
    return total / sum(y.numel() for x, y in batches)
