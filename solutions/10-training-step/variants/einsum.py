"""Everything by einsum; what an optimizer keeps stands in dicts by parameter."""

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
