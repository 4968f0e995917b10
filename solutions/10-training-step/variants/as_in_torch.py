"""Follow torch's code: lerp_ and addcdiv_, parameter groups, a clipped coefficient."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def softmax_backward(weights, grad):
    new = grad * weights
    return torch.addcmul(new, weights, new.sum(dim=-1, keepdim=True), value=-1)


def attention_backward(q, k, v, grad, mask=None):
    scale = 1.0 / math.sqrt(q.size(-1))
    attn = torch.matmul(q, k.transpose(-2, -1)).mul_(scale)
    if mask is not None:
        attn = attn.masked_fill_(~mask, float("-inf"))
    attn = torch.softmax(attn, dim=-1)
    d_attn = softmax_backward(attn, torch.matmul(grad, v.transpose(-2, -1)))
    d_attn *= scale
    return (
        torch.matmul(d_attn, k),
        torch.matmul(d_attn.transpose(-2, -1), q),
        torch.matmul(attn.transpose(-2, -1), grad),
    )


def cross_entropy_backward(logits, targets, ignore_index=-100):
    valid = targets != ignore_index
    grad = torch.softmax(logits, dim=-1)
    index = torch.where(valid, targets, torch.zeros_like(targets)).unsqueeze(-1)
    grad.scatter_(-1, index, grad.gather(-1, index) - 1)
    grad.masked_fill_(~valid.unsqueeze(-1), 0.0)
    return grad.div_(valid.sum())


def clip_gradients(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    total_norm = torch.linalg.vector_norm(
        torch.stack([torch.linalg.vector_norm(g.detach()) for g in grads])
    )
    clip_coef = torch.clamp(max_norm / (total_norm + 1e-6), max=1.0)
    for g in grads:
        g.detach().mul_(clip_coef.to(g.dtype))
    return total_norm.item()


def learning_rate(step, warmup, total, peak, floor):
    if step < warmup:
        return peak * (step + 1) / warmup
    if step > total:
        return floor
    decay_ratio = (step - warmup) / (total - warmup)
    assert 0 <= decay_ratio <= 1
    coeff = 0.5 * (1.0 + math.cos(math.pi * decay_ratio))
    return floor + coeff * (peak - floor)


class AdamW:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not 0.0 <= eps:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i in range(2):
            if not 0.0 <= betas[i] < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")
        if not 0.0 <= weight_decay:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
        self.param_groups = [dict(params=list(parameters), **defaults)]
        self.state = {}

    @property
    def lr(self):
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, value):
        for group in self.param_groups:
            group["lr"] = value

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state.setdefault(id(p), {})
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                    state["exp_avg_sq"] = torch.zeros_like(p, memory_format=torch.preserve_format)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                state["step"] += 1
                p.mul_(1 - group["lr"] * group["weight_decay"])
                exp_avg.lerp_(p.grad, 1 - beta1)
                exp_avg_sq.mul_(beta2).addcmul_(p.grad, p.grad, value=1 - beta2)
                bias_correction1 = 1 - beta1 ** state["step"]
                bias_correction2 = 1 - beta2 ** state["step"]
                step_size = group["lr"] / bias_correction1
                denom = (exp_avg_sq.sqrt() / math.sqrt(bias_correction2)).add_(group["eps"])
                p.addcdiv_(exp_avg, denom, value=-step_size)

    def zero_grad(self, set_to_none=True):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    if set_to_none:
                        p.grad = None
                    else:
                        p.grad.requires_grad_(False)
                        p.grad.zero_()


def train_step(model, idx, targets, optimizer, max_norm=1.0):
    logits = model(idx)
    loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-100)
    optimizer.zero_grad()
    loss.backward()
    clip_gradients(model.parameters(), max_norm)
    optimizer.step()
    return loss.detach().item()


@torch.no_grad()
def evaluate(model, batches):
    training = model.training
    model.eval()
    total, tokens = 0.0, 0
    for idx, targets in batches:
        logits = model(idx)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))
        total += loss.item() * targets.numel()
        tokens += targets.numel()
    model.train(training)
    return total / tokens
