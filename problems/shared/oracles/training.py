"""Compute the expected results for problem 10: gradients, optimizers and training steps."""

import itertools
import math

import torch
import torch.nn.functional as F

from grader.run.compare import check_number, require
from shared.oracles.gpt import cross_entropy_by_hand
from shared.small_model import random_batch
from shared.worked_example import derivative

DOUBLE = torch.float64

# Results of the README's examples

SOFTMAX_IN_NUMBERS = torch.tensor([[0.1875, -0.1875], [-0.5, 0.5]])

ATTENTION_IN_NUMBERS = (
    torch.tensor([[0.09375 * math.log(3), 0, 0, 0], [-0.25 * math.log(3), 0, 0, 0]]),
    torch.tensor([[0.1875, -0.5, 0, 0], [-0.1875, 0.5, 0, 0]]),
    torch.tensor([[0.75, 1], [0.25, 1]]),
)

LOSS_IN_NUMBERS = torch.tensor([[-0.4, 0.3, 0.1], [1 / 6, 1 / 6, 1 / 6 - 0.5]])

RATES = {
    0: 0.1,
    4: 0.5,
    9: 1.0,
    10: 1.0,
    35: 0.8681981,
    60: 0.55,
    109: 0.1002220,
    110: 0.1,
    500: 0.1,
}
"""Maps steps to learning rates, which rise for 10 steps to 1.0, then fall to 0.1 at step 110."""

ADAMW_IN_NUMBERS = torch.tensor([0.85, 1.05, 1.9])

REMAINING_SHARES = {
    (64, True): (0.0577, 0.005),
    (256, True): (0.0577, 0.005),
    (1024, True): (0.0577, 0.005),
    (64, False): (0.018, 0.004),
    (256, False): (0.0094, 0.0025),
    (1024, False): (0.0047, 0.0015),
}
"""The share of a gradient that remains after a softmax, and its tolerance.

The keys are pairs: d_k, and whether the scores are scaled.
"""


# Gradients


def softmax_backward_by_hand(weights, grad):
    """Return the gradient with respect to one row of scores.

    The derivative of weight j with respect to score i is w_j (1 - w_i) if i = j, else -w_j w_i.
    """
    return [
        sum(
            g * w_j * ((i == j) - w_i) for j, (w_j, g) in enumerate(zip(weights, grad, strict=True))
        )
        for i, w_i in enumerate(weights)
    ]


def softmax_backward(weights, grad):
    """Return the gradient with respect to the scores."""
    rows = [t.double().reshape(-1, t.shape[-1]).tolist() for t in (weights, grad)]
    gradients = [softmax_backward_by_hand(*row) for row in zip(*rows, strict=True)]
    return torch.tensor(gradients, dtype=DOUBLE).reshape(weights.shape).to(weights.dtype)


def attention_backward(q, k, v, grad, mask=None):
    """Return the gradients with respect to q, k and v, computed by autograd in float64."""
    leaves = [each.detach().double().requires_grad_() for each in (q, k, v)]
    with torch.enable_grad():
        scores = leaves[0] @ leaves[1].mT / math.sqrt(q.shape[-1])
        scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
        powers = (scores - scores.amax(-1, keepdim=True)).exp()
        output = powers / powers.sum(-1, keepdim=True) @ leaves[2]
    gradients = torch.autograd.grad((output * grad).sum(), leaves)
    return tuple(each.to(q.dtype) for each in gradients)


def cross_entropy_slopes(logits, targets):
    """Return the numerical derivative of the mean cross entropy with respect to each logit."""
    rows = logits.double().reshape(-1, logits.shape[-1]).tolist()
    tokens, slopes = targets.flatten().tolist(), []
    for row, logit in itertools.product(range(len(rows)), range(len(rows[0]))):

        def nudged(step, row=row, logit=logit):
            moved = [[*each] for each in rows]
            moved[row][logit] += step
            return cross_entropy_by_hand(moved, tokens)

        slopes.append(derivative(nudged))
    return torch.tensor(slopes, dtype=DOUBLE).reshape(logits.shape).to(logits.dtype)


def cross_entropy_backward(logits, targets):
    """Return the gradient of the mean cross entropy, computed by autograd in float64."""
    leaf, counts = logits.detach().double().requires_grad_(), targets != -100
    with torch.enable_grad():
        powers = leaf.exp()
        chosen = powers.gather(-1, targets.clamp(min=0)[..., None])[..., 0] / powers.sum(-1)
        loss = -torch.where(counts, chosen.log(), 0).sum() / counts.sum()
    return torch.autograd.grad(loss, leaf)[0].to(logits.dtype)


# The optimizer


def norm(gradients):
    """Return the norm of all gradients as one vector."""
    return math.sqrt(sum(float(g.double().square().sum()) for g in gradients.values()))


def clipped(gradients, max_norm):
    """Return the gradients, scaled down to the norm `max_norm` if their norm is larger."""
    size = norm(gradients)
    factor = max_norm / size if size > max_norm else 1
    return {name: factor * gradient for name, gradient in gradients.items()}


def learning_rate(step, warmup, total, peak, floor):
    """Return the learning rate of a step: it rises linearly, then falls along a cosine."""
    if step < warmup:
        return (step + 1) * peak / warmup
    angle = math.pi * min(1, (step - warmup) / (total - warmup))
    return floor + (peak - floor) * (math.cos(angle) + 1) / 2


def adamw_by_hand(number, gradients, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    """Return a parameter of one number after AdamW steps with these gradients.

    A gradient of None changes nothing. `lr` may be a list with a learning rate for each step.
    """
    mean = square = steps = 0
    rates = lr if isinstance(lr, list) else [lr] * len(gradients)
    for rate, gradient in zip(rates, gradients, strict=True):
        if gradient is None:
            continue
        steps += 1
        number -= rate * weight_decay * number
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + (1 - betas[1]) * gradient**2
        corrected = mean / (1 - betas[0] ** steps), square / (1 - betas[1] ** steps)
        number -= rate * corrected[0] / (math.sqrt(corrected[1]) + eps)
    return number


def adamw(weight, gradients, **options):
    """Return a parameter after AdamW steps with these gradients, computed number by number."""
    if not gradients:
        return weight
    columns = [[None] * weight.numel() if g is None else g.flatten().tolist() for g in gradients]
    rows = zip(weight.flatten().tolist(), zip(*columns, strict=True), strict=True)
    numbers = [adamw_by_hand(number, list(row), **options) for number, row in rows]
    return torch.tensor(numbers, dtype=weight.dtype).reshape(weight.shape)


# A SmallModel


def loss(weights, idx, targets):
    """Return the mean loss of a SmallModel with these weights, without dropout."""
    return loss_of(weights, idx, targets).item()


def loss_of(weights, idx, targets):
    """Return the mean loss of a SmallModel as a tensor that supports autograd."""
    x = weights["wte.weight"][idx] + weights["wpe.weight"][: idx.shape[1]]
    x = torch.tanh(x @ weights["hidden.weight"].T + weights["hidden.bias"])
    logits = x @ weights["lm_head.weight"].T + weights["lm_head.bias"]
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def mean_loss(weights, batches):
    """Return the mean loss of a SmallModel over all tokens of the batches."""
    losses = [loss(weights, *batch) * batch[0].numel() for batch in batches]
    return sum(losses) / sum(idx.numel() for idx, _ in batches)


def gradients(weights, idx, targets):
    """Return the gradients of `loss` with respect to the weights, by name."""
    leaves = {name: w.clone().requires_grad_() for name, w in weights.items()}
    with torch.enable_grad():
        value = loss_of(leaves, idx, targets)
    return dict(zip(leaves, torch.autograd.grad(value, [*leaves.values()]), strict=True))


def after_sgd(weights, idx, targets, lr, max_norm):
    """Return the weights after a step of plain gradient descent with clipped gradients."""
    slopes = clipped(gradients(weights, idx, targets), max_norm)
    return {name: weight - lr * slopes[name] for name, weight in weights.items()}


def steep_batch(rng, weights):
    """Return random tokens and targets, (1, 1) each, with a gradient norm of at least 1.5."""
    while True:
        batch = random_batch(rng, 1, 1)
        if norm(gradients(weights, *batch)) >= 1.5:
            return batch


def worst_targets(weights, idx):
    """Return targets that are all the same token: the one with the largest loss."""
    every = [torch.full_like(idx, token) for token in range(len(weights["wte.weight"]))]
    return max(every, key=lambda targets: loss(weights, idx, targets))


# Judges


def unchanged(tensors):
    """Return the tensors, as the expected result if nothing may change."""
    return tensors


def sums_of_rows(grad):
    """Return zeros: the expected sum of each row of a gradient with respect to scores."""
    return torch.zeros(grad.shape[:-1], dtype=grad.dtype)


def is_near(value, call, expected, share=1e-4, atol=1e-6):
    """Require a float or a tensor of one number, with a relative error of at most `share`."""
    is_tensor = isinstance(value, torch.Tensor) and value.dim() == 0
    is_near_float(value.item() if is_tensor else value, call, expected, share, atol)


def is_near_float(value, call, expected, share=1e-4, atol=1e-6):
    """Require a Python float with a relative error of at most `share`."""
    near = share * abs(expected) + atol
    check_number(value, expected - near, expected + near, call, f"{expected:.7g}")


def is_remaining_share(value, call, d_k, is_scaled):
    """Require that the correct share of a gradient remains after a softmax."""
    share, near = REMAINING_SHARES[d_k, is_scaled]
    check_number(value, share - near, share + near, call, f"about {share:.1%}")


def are_cleared(gradients, call):
    """Require that every gradient is None or 0."""
    for name, gradient in gradients.items():
        none = gradient is None or not gradient.any()
        require(none, f"{call}\nThe gradient of `{name}` is still {gradient}.")


def learns_by_heart(losses, call, before):
    """Require that the first loss is not near 0, and that the last loss is near 0.

    Args:
        losses: the first and the last loss of a training.
        call: the call, as text.
        before: the expected loss of the untrained model.
    """
    first, last = (each.item() if isinstance(each, torch.Tensor) else each for each in losses)
    check_number(first, 0.5, 2 * before, call, "far above 0 before the training")
    check_number(
        last, 0.0, 0.1, call, "below 0.1 after the training, as the model can memorize the texts"
    )


def records_nothing(was_refused, call):
    """Require that the model stored no results for a backward pass.

    `was_refused` is True if PyTorch raised an exception because the model tried to store them.
    """
    hint = "PyTorch stores the model's results for a backward pass. How can you prevent that?"
    require(not was_refused, f"{call}\n{hint}")
