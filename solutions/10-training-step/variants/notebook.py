"""Use one small step per line, as in a notebook, with .data and zeros for missing gradients."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def softmax_backward(weights, grad):
    product = weights * grad
    total = torch.sum(product, dim=-1, keepdim=True)
    return product - weights * total


def attention_backward(q, k, v, grad, mask=None):
    d_k = q.size(-1)
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(float("-inf"), dtype=scores.dtype))
    weights = F.softmax(scores, dim=-1)

    dv = torch.matmul(weights.transpose(-2, -1), grad)
    dweights = torch.matmul(grad, v.transpose(-2, -1))
    dscores = softmax_backward(weights, dweights)
    dscores = dscores / math.sqrt(d_k)
    dq = torch.matmul(dscores, k)
    dk = torch.matmul(dscores.transpose(-2, -1), q)
    return dq, dk, dv


def cross_entropy_backward(logits, targets):
    V = logits.size(-1)
    flat = logits.reshape(-1, V)
    t = targets.reshape(-1)
    counts = t != -100
    n = counts.sum()
    probs = F.softmax(flat, dim=-1)
    onehot = torch.zeros_like(flat)
    rows = torch.arange(flat.size(0))[counts]
    onehot[rows, t[counts]] = 1
    out = (probs - onehot) / n
    out[~counts] = 0
    return out.reshape(logits.shape)


def clip_gradients(parameters, max_norm):
    parameters = list(parameters)
    total = 0.0
    for p in parameters:
        if p.grad is not None:
            total = total + p.grad.norm().item() ** 2
    total = total**0.5
    if total > max_norm:
        for p in parameters:
            if p.grad is not None:
                p.grad = p.grad * (max_norm / total)
    return total


def learning_rate(step, warmup, total, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    elif step < total:
        progress = (step - warmup) / (total - warmup)
        return floor + 0.5 * (peak - floor) * (1.0 + math.cos(math.pi * progress))
    else:
        return floor


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        if lr < 0:
            raise ValueError("lr is negative")
        if eps < 0:
            raise ValueError("eps is negative")
        if weight_decay < 0:
            raise ValueError("weight_decay is negative")
        if betas[0] < 0 or betas[0] >= 1 or betas[1] < 0 or betas[1] >= 1:
            raise ValueError("betas should be in [0, 1)")
        self.params = [p for p in parameters]
        self.lr = lr
        self.beta1, self.beta2 = betas
        self.eps = eps
        self.wd = weight_decay
        self.state = [{"t": 0, "m": 0.0, "v": 0.0} for p in self.params]

    def step(self):
        for p, s in zip(self.params, self.state):
            if p.grad is None:
                continue
            g = p.grad.data
            s["t"] = s["t"] + 1
            s["m"] = self.beta1 * s["m"] + (1 - self.beta1) * g
            s["v"] = self.beta2 * s["v"] + (1 - self.beta2) * g**2
            m_hat = s["m"] / (1 - self.beta1 ** s["t"])
            v_hat = s["v"] / (1 - self.beta2 ** s["t"])
            p.data = p.data - self.lr * self.wd * p.data
            p.data = p.data - self.lr * m_hat / (torch.sqrt(v_hat) + self.eps)

    def zero_grad(self):
        for p in self.params:
            if p.grad is not None:
                p.grad.zero_()


def train_step(model, idx, targets, optimizer, max_norm=1.0):
    model.train()
    logits = model(idx)
    B, T, V = logits.shape
    loss = F.cross_entropy(logits.view(B * T, V), targets.view(B * T))
    optimizer.zero_grad()
    loss.backward()
    clip_gradients(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


def evaluate(model, batches):
    mode = model.training
    model.eval()
    losses = []
    with torch.no_grad():
        for x, y in batches:
            logits = model(x)
            losses.append(F.cross_entropy(logits.transpose(1, 2), y, reduction="none").flatten())
    if mode:
        model.train()
    return torch.cat(losses).mean().item()
