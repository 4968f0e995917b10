"""Compute weights as exp(score - logsumexp). Use the faster formula from the paper on Adam."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, nll_loss


def softmax_backward(weights: Tensor, grad: Tensor) -> Tensor:
    mean = torch.linalg.vecdot(weights, grad).unsqueeze(-1)
    return torch.mul(weights, torch.sub(grad, mean))


def attention_backward(q, k, v, grad, mask=None):
    q_scaled = q / math.sqrt(q.size(-1))
    k_scaled = k / math.sqrt(k.size(-1))
    scores = torch.matmul(q_scaled, k.mT)
    if mask is not None:
        scores = scores.where(mask, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))
    if mask is not None:
        weights = weights * mask
    slopes = softmax_backward(weights, torch.matmul(grad, v.mT))
    return (
        torch.matmul(slopes, k_scaled),
        torch.matmul(slopes.mT, q_scaled),
        torch.matmul(weights.mT, grad),
    )


def cross_entropy_backward(logits, targets):
    ignored = (targets == -100)[..., None]
    index = targets[..., None].clamp_min(0)
    result = logits.log_softmax(-1).exp()
    result = result - torch.zeros_like(result).scatter(-1, index, 1.0)
    return result.masked_fill(ignored, 0) / (~ignored).sum().to(result.dtype)


@torch.no_grad()
def clip_gradients(parameters, max_norm: float) -> float:
    params = [p for p in parameters if p.grad is not None]
    norm = torch.nn.utils.parameters_to_vector([p.grad for p in params]).norm(2)
    if norm.gt(max_norm):
        for p in params:
            p.grad.mul_(max_norm).div_(norm)
    return norm.item()


def learning_rate(step, warmup, total, peak, floor):
    ramp = (step + 1) / warmup if step < warmup else None
    if ramp is not None:
        return peak * ramp
    angle = torch.tensor(math.pi * min((step - warmup) / (total - warmup), 1), dtype=torch.float64)
    return (floor + (peak - floor) * (torch.cos(angle) + 1) / 2).item()


class AdamW:
    """AdamW that includes both bias corrections in the learning rate."""

    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        bad = [value for value in (lr, eps, weight_decay) if value < 0]
        bad += [value for value in betas if value < 0 or value >= 1]
        if bad:
            raise ValueError(f"{bad[0]} is not allowed")
        self.lr = lr
        self.options = betas, eps, weight_decay
        self.slots = [[p, 0, None, None] for p in parameters]

    @torch.no_grad()
    def step(self):
        (beta1, beta2), eps, decay = self.options
        for slot in self.slots:
            p, t, m, v = slot
            if p.grad is None:
                continue
            t += 1
            m = (1 - beta1) * p.grad if m is None else torch.lerp(p.grad, m, beta1)
            v = (1 - beta2) * p.grad**2 if v is None else torch.lerp(p.grad**2, v, beta2)
            slot[1:] = t, m, v
            root = math.sqrt(1 - beta2**t)
            p -= self.lr * decay * p
            p -= self.lr * root / (1 - beta1**t) * m / (v.sqrt() + eps * root)

    @torch.no_grad()
    def zero_grad(self):
        for p, *_ in self.slots:
            if p.grad is not None:
                p.grad = torch.zeros_like(p)


def train_step(model, idx, targets, optimizer, max_norm=1.0):
    optimizer.zero_grad()
    with torch.enable_grad():
        logits = model(idx)
        loss = nll_loss(logits.log_softmax(-1).flatten(0, 1), targets.flatten())
    loss.backward()
    clip_gradients(model.parameters(), max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


@torch.inference_mode()
def evaluate(model, batches):
    was = model.training
    model.eval()
    losses = [cross_entropy(model(i).flatten(0, 1), t.flatten()).item() for i, t in batches]
    sizes = [t.numel() for _, t in batches]
    model.train(was)
    return sum(loss * size for loss, size in zip(losses, sizes)) / sum(sizes)
