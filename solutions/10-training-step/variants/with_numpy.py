"""Write the first three functions in NumPy, without automatic gradients."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def through(w, g):
    return w * (g - (w * g).sum(axis=-1, keepdims=True))


def softmax_backward(weights, grad):
    return torch.from_numpy(through(weights.numpy(), grad.numpy()))


def attention_backward(q, k, v, grad, mask=None):
    shapes = [np.swapaxes(each.numpy(), -1, -2) for each in (k, v)]
    q, k, v, grad = (each.numpy() for each in (q, k, v, grad))
    kt, vt = shapes
    scale = q.dtype.type(q.shape[-1] ** -0.5)
    scores = (q @ kt) * scale
    if mask is not None:
        scores = np.where(mask.numpy(), scores, -np.inf).astype(q.dtype)
    weights = softmax(scores)
    slopes = through(weights, grad @ vt) * scale
    dq = slopes @ k
    dk = np.swapaxes(slopes, -1, -2) @ q
    dv = np.swapaxes(weights, -1, -2) @ grad
    return tuple(torch.from_numpy(each) for each in (dq, dk, dv))


def cross_entropy_backward(logits, targets):
    flat, t = logits.reshape(-1, logits.shape[-1]).numpy(), targets.reshape(-1).numpy()
    keep = np.flatnonzero(t != -100)
    out = np.zeros(flat.shape, dtype=flat.dtype)
    out[keep] = softmax(flat[keep])
    out[keep, t[keep]] -= 1
    out /= len(keep)
    return torch.from_numpy(out).reshape(logits.shape)


def clip_gradients(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = float(np.sqrt(sum((g.numpy().astype(np.float64) ** 2).sum() for g in grads)))
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    return norm


def learning_rate(step, warmup, total, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    done = np.clip((step - warmup) / (total - warmup), 0, 1)
    return float(floor + (peak - floor) * 0.5 * (1 + np.cos(np.pi * done)))


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        options = np.array([lr, eps, weight_decay])
        if (options < 0).any():
            raise ValueError("lr, eps and weight_decay can't be negative")
        if not ((np.array(betas) >= 0) & (np.array(betas) < 1)).all():
            raise ValueError("betas must lie in [0, 1)")
        self.params = list(parameters)
        self.lr = lr
        self.b1, self.b2 = betas
        self.eps = eps
        self.decay = weight_decay
        self.kept = {}

    def step(self):
        for number, p in enumerate(self.params):
            if p.grad is None:
                continue
            g = p.grad.numpy()
            t, m, v = self.kept.get(number, (0, np.zeros_like(g), np.zeros_like(g)))
            t, m, v = t + 1, self.b1 * m + (1 - self.b1) * g, self.b2 * v + (1 - self.b2) * g**2
            self.kept[number] = t, m, v
            up = m / (1 - self.b1**t)
            down = np.sqrt(v / (1 - self.b2**t)) + self.eps
            array = p.detach().numpy()
            array *= 1 - self.lr * self.decay
            array -= self.lr * up / down

    def zero_grad(self):
        for p in self.params:
            p.grad = None


def train_step(model, idx, targets, optimizer, max_norm=1.0):
    model.zero_grad()
    loss = F.cross_entropy(model(idx).permute(0, 2, 1), targets)
    loss.backward()
    clip_gradients(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


def evaluate(model, batches):
    before = model.training
    model.eval()
    total = np.array([0.0, 0.0])
    for idx, targets in batches:
        with torch.no_grad():
            loss = F.cross_entropy(model(idx).permute(0, 2, 1), targets)
        total += np.array([loss.item(), 1]) * idx.numel()
    model.train(before)
    return float(total[0] / total[1])
