"""AdamW over one flat vector of all parameters; attention with keys by queries."""

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


class SmallModel(nn.Module):
    def __init__(self, vocab_size, n_positions, n_embd, dropout=0.0):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(n_positions, n_embd)
        self.hidden = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
        return self.lm_head(self.dropout(torch.tanh(self.hidden(x))))


class SGD:
    def __init__(self, parameters, lr):
        self.parameters = list(parameters)
        self.lr = lr

    @torch.no_grad()
    def step(self):
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter -= self.lr * parameter.grad

    def zero_grad(self):
        for parameter in self.parameters:
            parameter.grad = None


def optimizer_of(model, **options):
    return AdamW(model.parameters(), **options)


class Bench:
    def __init__(self, weights, dropout=0.0, sgd=None, **options):
        if "wte.weight" in weights:
            vocab_size, n_embd = weights["wte.weight"].shape
            self.model = SmallModel(vocab_size, len(weights["wpe.weight"]), n_embd, dropout)
            self.model.to(weights["wte.weight"].dtype).load_state_dict(weights)
        else:
            self.model = nn.ParameterDict({name: w.clone() for name, w in weights.items()})
        if sgd is None:
            self.optimizer = optimizer_of(self.model, **options)
        else:
            self.optimizer = SGD(self.model.parameters(), sgd)

    def weights(self):
        return {name: p.detach().clone() for name, p in self.model.named_parameters()}

    def gradients(self):
        named = self.model.named_parameters()
        return {name: None if p.grad is None else p.grad.clone() for name, p in named}

    def set_gradients(self, gradients):
        for name, parameter in self.model.named_parameters():
            parameter.grad = gradients[name].clone() if name in gradients else None

    def set_lr(self, lr):
        self.optimizer.lr = lr

    def train(self, mode=True):
        self.model.train(mode)

    def modes(self):
        return [module.training for module in self.model.modules()]

    def clip(self, max_norm):
        return clip_gradients(self.model.parameters(), max_norm)

    def train_step(self, idx, targets, **options):
        return train_step(self.model, idx, targets, self.optimizer, **options)

    def evaluate(self, batches):
        return evaluate(self.model, batches)
