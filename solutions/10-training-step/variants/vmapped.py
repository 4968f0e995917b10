"""Apply functions of one sequence with torch.vmap. Use generators and small functions."""

import functools
import math
from itertools import tee

import torch
import torch.nn.functional as F
from torch import nn


def softmax_backward(weights, grad):
    def row(w, g):
        return w * g - w * torch.dot(w, g)

    for _ in range(weights.dim() - 1):
        row = torch.vmap(row)
    return row(weights, grad)


def one_sequence(q, k, v, grad, mask):
    d = q.shape[-1]
    scores = (q @ k.T).div(math.sqrt(d)).masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1)
    slopes = grad @ v.T
    slopes = weights * (slopes - (weights * slopes).sum(-1, keepdim=True))
    return slopes @ k / math.sqrt(d), slopes.T @ q / math.sqrt(d), weights.T @ grad


def attention_backward(q, k, v, grad, mask=None):
    n, m = q.shape[-2], k.shape[-2]
    if mask is None:
        mask = torch.ones((n, m), dtype=torch.bool)
    mask = mask.expand(*q.shape[:-2], n, m)
    function = one_sequence
    for _ in range(q.dim() - 2):
        function = torch.vmap(function)
    return list(function(q, k, v, grad, mask))


def cross_entropy_backward(logits, targets):
    number = (targets != -100).sum()
    ones = torch.eye(logits.shape[-1], dtype=logits.dtype)
    right = ones[targets.clamp(min=0)]
    powers = (logits - logits.amax(-1, keepdim=True)).exp()
    p = powers / powers.sum(-1, keepdim=True)
    return (p - right) * (targets != -100).unsqueeze(-1) / number


def clip_gradients(parameters, max_norm):
    first, second = tee(p.grad for p in parameters if p.grad is not None)
    norm = math.hypot(*(g.norm().item() for g in first))
    factor = max_norm / max(norm, max_norm)
    for g in second:
        g.copy_(g * factor)
    return norm


def learning_rate(step, warmup, total, peak, floor):
    match step:
        case _ if step < warmup:
            return peak * (step + 1) / warmup
        case _ if step < total:
            share = (1 + math.cos(math.pi * (step - warmup) / (total - warmup))) / 2
            return share * peak + (1 - share) * floor
        case _:
            return floor


def checked(lr, betas, eps, weight_decay):
    if lr < 0.0 or eps < 0.0 or weight_decay < 0.0:
        raise ValueError("lr, eps and weight_decay must not be negative")
    if not all(0.0 <= b < 1.0 for b in betas):
        raise ValueError("betas must be in [0, 1)")


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        checked(lr, betas, eps, weight_decay)
        self.lr = lr
        self.moves = [self.mover(p, betas, eps, weight_decay) for p in parameters]
        for move in self.moves:
            next(move)

    @staticmethod
    def mover(p, betas, eps, weight_decay):
        """Yield repeatedly, and update a parameter each time a learning rate is sent."""
        b1, b2 = betas
        m = v = t = 0
        while True:
            lr = yield p
            if p.grad is not None:
                t += 1
                m, v = b1 * m + (1 - b1) * p.grad, b2 * v + (1 - b2) * p.grad * p.grad
                with torch.no_grad():
                    p.mul_(1 - lr * weight_decay)
                    p.sub_(lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + eps))

    def step(self):
        self.moving = [move.send(self.lr) for move in self.moves]

    def zero_grad(self):
        for move in self.moves:
            move.gi_frame.f_locals["p"].grad = None


def train_step(model, idx, targets, optimizer, max_norm=1.0):
    optimizer.zero_grad()
    loss = functools.partial(F.cross_entropy, reduction="sum")(
        model(idx).flatten(0, 1), targets.flatten()
    )
    loss = loss / targets.numel()
    loss.backward()
    clip_gradients((p for p in model.parameters()), max_norm)
    optimizer.step()
    return float(loss.detach())


def evaluate(model, batches):
    restore = model.train if model.training else model.eval
    model.eval()
    with torch.no_grad():
        pairs = [
            (F.cross_entropy(model(x).flatten(0, 1), y.flatten()), y.numel()) for x, y in batches
        ]
    restore()
    tokens = sum(n for _, n in pairs)
    return sum(loss.item() * n / tokens for loss, n in pairs)
