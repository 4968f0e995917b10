"""Update all parameters at once with torch._foreach_* functions."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def softmax_backward(weights, grad):
    return weights * grad - weights * (weights * grad).sum(-1, True)


def attention_backward(q, k, v, grad, mask=None):
    # As in FlashAttention, sum(grad_weights * weights) is sum(grad * output) for each row.
    root = k.size(-1) ** 0.5
    scores = q @ k.mT / root
    if mask is not None:
        scores = scores + torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1)
    output = weights @ v
    delta = (grad * output).sum(-1, keepdim=True)
    d_scores = weights * (grad @ v.mT - delta) / root
    return d_scores @ k, d_scores.mT @ q, weights.mT @ grad


def cross_entropy_backward(logits, targets):
    keep = targets != -100
    slopes = torch.zeros_like(logits)
    rows = logits[keep]
    slopes[keep] = (rows.softmax(-1) - F.one_hot(targets[keep], rows.shape[-1])) / len(rows)
    return slopes


@torch.no_grad()
def clip_gradients(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.stack(torch._foreach_norm(grads)).norm().item()
    if norm > max_norm:
        torch._foreach_mul_(grads, max_norm / norm)
    return norm


def learning_rate(step, warmup, total, peak, floor):
    if step < warmup:
        return peak * ((step + 1) / warmup)
    x = min(step, total) - warmup
    return (peak + floor) / 2 + (peak - floor) / 2 * math.cos(math.pi * x / (total - warmup))


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        for name, value in {"lr": lr, "eps": eps, "weight_decay": weight_decay}.items():
            if value < 0:
                raise ValueError(name)
        for beta in betas:
            if beta < 0 or beta >= 1:
                raise ValueError(beta)
        self.parameters = [*parameters]
        self.exp_avgs = [torch.zeros_like(p) for p in self.parameters]
        self.exp_avg_sqs = [torch.zeros_like(p) for p in self.parameters]
        self.counts = [0] * len(self.parameters)
        self.lr, self.eps, self.weight_decay = lr, eps, weight_decay
        self.betas = betas

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        places = [i for i, p in enumerate(self.parameters) if p.grad is not None]
        if not places:
            return
        for i in places:
            self.counts[i] += 1
        ps, ms, vs = (
            [each[i] for i in places] for each in (self.parameters, self.exp_avgs, self.exp_avg_sqs)
        )
        grads = [p.grad for p in ps]
        torch._foreach_mul_(ps, 1 - self.lr * self.weight_decay)
        torch._foreach_mul_(ms, b1)
        torch._foreach_add_(ms, grads, alpha=1 - b1)
        torch._foreach_mul_(vs, b2)
        torch._foreach_addcmul_(vs, grads, grads, 1 - b2)
        corrected = torch._foreach_div(vs, [1 - b2 ** self.counts[i] for i in places])
        torch._foreach_sqrt_(corrected)
        torch._foreach_add_(corrected, self.eps)
        sizes = [-self.lr / (1 - b1 ** self.counts[i]) for i in places]
        torch._foreach_addcdiv_(ps, ms, corrected, sizes)

    @torch.no_grad()
    def zero_grad(self):
        grads = [p.grad for p in self.parameters if p.grad is not None]
        if grads:
            torch._foreach_zero_(grads)


def train_step(model, idx, targets, optimizer, max_norm=1.0):
    optimizer.zero_grad()
    loss = nn.CrossEntropyLoss()(model(idx).flatten(end_dim=-2), targets.flatten())
    loss.backward()
    clip_gradients(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


def evaluate(model, batches):
    modes = {module: module.training for module in model.modules()}
    with torch.no_grad():
        model.eval()
        criterion = nn.CrossEntropyLoss(reduction="none")
        losses = torch.cat([criterion(model(x).flatten(0, 1), y.flatten()) for x, y in batches])
    for module, mode in modes.items():
        module.training = mode
    return losses.double().mean().item()
