"""Query by query: the Jacobian of a single row is small."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def softmax_backward(weights, grad):
    rows = zip(weights.reshape(-1, weights.shape[-1]), grad.reshape(-1, grad.shape[-1]))
    found = [(torch.diag(w) - torch.outer(w, w)) @ g for w, g in rows]
    return torch.stack(found).reshape(weights.shape)


def one_query(q, k, v, grad, mask):
    scores = (k @ q) / math.sqrt(len(q))
    if mask is not None:
        scores[~mask] = -math.inf
    w = torch.exp(scores - scores.max())
    w = w / w.sum()
    d_w = v @ grad
    d_scores = w * d_w - w * torch.dot(w, d_w)
    d_scores = d_scores / math.sqrt(len(q))
    return d_scores @ k, torch.outer(d_scores, q), torch.outer(w, grad)


def attention_backward(q, k, v, grad, mask=None):
    n, m = q.shape[-2], k.shape[-2]
    lead = q.shape[:-2]
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    if mask is not None:
        mask = mask.broadcast_to(*lead, n, m)
    for place in (
        torch.cartesian_prod(*map(torch.arange, lead)).reshape(-1, len(lead)) if lead else [()]
    ):
        at = tuple(int(i) for i in place)
        for i in range(n):
            allowed = None if mask is None else mask[at][i]
            a, b, c = one_query(q[at][i], k[at], v[at], grad[at][i], allowed)
            dq[at][i] = a
            dk[at] += b
            dv[at] += c
    return dq, dk, dv


def cross_entropy_backward(logits, targets):
    grad = torch.zeros_like(logits).reshape(-1, logits.shape[-1])
    labels = targets.reshape(-1).tolist()
    count = sum(label != -100 for label in labels)
    for i, (row, label) in enumerate(zip(logits.reshape(-1, logits.shape[-1]), labels)):
        if label == -100:
            continue
        p = torch.softmax(row, 0)
        p[label] -= 1
        grad[i] = p / count
    return grad.reshape(logits.shape)


def clip_gradients(parameters, max_norm):
    having = [p for p in parameters if p.grad is not None]
    total = math.sqrt(math.fsum(float(x) ** 2 for p in having for x in p.grad.flatten()))
    if total <= max_norm:
        return total
    for p in having:
        p.grad /= total / max_norm
    return total


def learning_rate(step, warmup, total, peak, floor):
    if warmup > 0 and step < warmup:
        return peak * (step + 1) / warmup
    if step >= total:
        return floor
    t = (step - warmup) / (total - warmup)
    return floor + 0.5 * (peak - floor) * (1 + math.cos(t * math.pi))


class State:
    def __init__(self, parameter):
        self.parameter = parameter
        self.first = torch.zeros_like(parameter)
        self.second = torch.zeros_like(parameter)
        self.power1 = self.power2 = 1.0

    def update(self, lr, betas, eps, decay):
        g = self.parameter.grad
        self.power1 *= betas[0]
        self.power2 *= betas[1]
        self.first = betas[0] * self.first + (1 - betas[0]) * g
        self.second = betas[1] * self.second + (1 - betas[1]) * g.square()
        direction = (self.first / (1 - self.power1)) / (
            (self.second / (1 - self.power2)).sqrt() + eps
        )
        self.parameter.copy_((1 - lr * decay) * self.parameter - lr * direction)


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        if lr < 0 or eps < 0 or weight_decay < 0 or min(betas) < 0 or max(betas) >= 1:
            raise ValueError("an option is out of range")
        self.states = [State(p) for p in parameters]
        self.lr, self.betas, self.eps, self.decay = lr, betas, eps, weight_decay

    def step(self):
        with torch.no_grad():
            for state in self.states:
                if state.parameter.grad is not None:
                    state.update(self.lr, self.betas, self.eps, self.decay)

    def zero_grad(self):
        for state in self.states:
            state.parameter.grad = None


def train_step(model, idx, targets, optimizer, max_norm=1.0):
    for p in model.parameters():
        p.grad = None
    loss = F.cross_entropy(model(idx).reshape(idx.numel(), -1), targets.reshape(-1))
    loss.backward()
    clip_gradients(iter(list(model.parameters())), max_norm)
    optimizer.step()
    return loss.item()


def evaluate(model, batches):
    training = model.training
    model.train(False)
    losses = []
    for idx, targets in batches:
        for row, target in zip(idx, targets):
            with torch.no_grad():
                logits = model(row[None])[0]
            losses += F.cross_entropy(logits, target, reduction="none").tolist()
    model.train(training)
    return math.fsum(losses) / len(losses)


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
