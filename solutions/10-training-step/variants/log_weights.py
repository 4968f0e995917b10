"""By logarithms: weights as exp of scores less their logsumexp; Adam as in the paper's remark."""

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
    """Multiplies the learning rate by what corrects both means."""

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
