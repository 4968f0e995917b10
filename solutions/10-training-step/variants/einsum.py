"""Use einsum for all products. The optimizer stores its state in dicts by parameter."""

import math

import torch
import torch.nn.functional as F
from torch import einsum, nn


def softmax_backward(weights, grad):
    total = einsum("...m,...m->...", weights, grad)
    return weights * (grad - total[..., None])


def attention_backward(q, k, v, grad, mask=None):
    s = 1 / math.sqrt(k.shape[-1])
    scores = einsum("...nd,...md->...nm", q * s, k)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    a = scores.softmax(dim=-1)
    dv = einsum("...nm,...nd->...md", a, grad)
    da = einsum("...nd,...md->...nm", grad, v)
    ds = softmax_backward(a, da)
    return einsum("...nm,...md->...nd", ds, k * s), einsum("...nm,...nd->...md", ds, q * s), dv


def cross_entropy_backward(logits, targets):
    keep = targets.ne(-100)
    p = logits.softmax(-1)
    index = targets.masked_fill(~keep, 0).unsqueeze(-1)
    p = p.scatter_add(-1, index, -torch.ones_like(index, dtype=p.dtype))
    return einsum("...v,...->...v", p, keep.to(p.dtype) / keep.sum())


def clip_gradients(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = sum(einsum("i,i->", g.flatten(), g.flatten()) for g in grads) ** 0.5
    for g in grads if norm > max_norm else []:
        g.mul_(max_norm / norm)
    return float(norm)


def learning_rate(step, warmup, total, peak, floor):
    if step < warmup:
        return peak / warmup * (step + 1)
    part = min((step - warmup) / (total - warmup), 1.0)
    return floor + (peak - floor) * math.cos(part * math.pi / 2) ** 2


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        if min(lr, eps, weight_decay) < 0:
            raise ValueError("negative")
        if not (0 <= betas[0] < 1 and 0 <= betas[1] < 1):
            raise ValueError("betas")
        self.params = tuple(parameters)
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.m, self.v, self.t = {}, {}, {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            g = p.grad
            if g is None:
                continue
            if p not in self.t:
                self.m[p], self.v[p], self.t[p] = torch.zeros_like(p), torch.zeros_like(p), 0
            self.t[p] += 1
            self.m[p] = b1 * self.m[p] + (1 - b1) * g
            self.v[p] = b2 * self.v[p] + (1 - b2) * g * g
            m = self.m[p] / (1 - b1 ** self.t[p])
            v = self.v[p] / (1 - b2 ** self.t[p])
            p.sub_(self.lr * (m / (v.sqrt() + self.eps) + self.weight_decay * p))

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def train_step(model, idx, targets, optimizer, max_norm=1.0):
    optimizer.zero_grad()
    logits = model(idx)
    loss = F.cross_entropy(logits.mT, targets)
    loss.backward()
    clip_gradients(model.parameters(), max_norm)
    optimizer.step()
    return float(loss)


def evaluate(model, batches):
    training = model.training
    model.eval()
    with torch.inference_mode():
        sums = [F.cross_entropy(model(x).mT, y, reduction="sum") for x, y in batches]
    model.train(training)
    return float(sum(sums)) / sum(y.numel() for _, y in batches)
