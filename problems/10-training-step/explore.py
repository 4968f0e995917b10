"""Pictures for problem 10: why gradients vanish, and the effect of the optimizer.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter; it takes half a minute. It
trains a small GPT with three optimizers, one of them your AdamW, and with your training step. Until
both are correct, it uses the course's. To train for more steps than 400:
`uv run python explore.py 1000`. Without a display, or with `--save`, it writes the pictures to
pictures/my_NAME.png.
"""

# %% How many steps to train.
import grader.student.script  # noqa: F401  (so that no file in this folder hides a module)

# isort: split
import copy
import importlib.util
import math
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import torch
from torch import nn

from shared import pictures
from shared.oracles import torch_gpt

plt.style.use(pictures.STYLE)
steps = max(1, int(pictures.numbers([400])[0]))
problem = "10-training-step"
threads = torch.get_num_threads()
torch.set_num_threads(1)  # more threads don't make such a small model faster

# %% How much of a gradient is left after a softmax?
lengths = [4**power for power in range(1, 6)]


def shares(module):
    """Return the share of a gradient that is left after a softmax, for each d_k in `lengths`.

    The first row is for scaled scores, and the second for unscaled scores.
    """
    generator, remaining = torch.Generator().manual_seed(10), []
    for d_k in lengths:
        q, k = (torch.randn(500, n, d_k, generator=generator) for n in (40, 16))
        grad = torch.randn(500, 40, 16, generator=generator)
        for size in (d_k**-0.5, 1.0):
            weights = (q @ k.mT * size).clamp(-80, 80).softmax(-1)
            left = module.softmax_backward(weights, grad.clone())
            remaining.append(left.abs().sum() / grad.abs().sum())
    return torch.stack(remaining).view(len(lengths), 2).T


right = shares(torch_gpt)
yours = pictures.yours(problem, "softmax_backward", shares, right)
scaled, plain = (right if yours is None else yours).tolist()
print("What is left of the gradient, in percent:\n  d_k    scaled   not scaled")
for row in zip(lengths, scaled, plain, strict=True):
    print("  {:4}   {:6.1%}   {:10.1%}".format(*row))

figure, axes = plt.subplots(figsize=(8, 3.2))
for shown, marker, colour, label in [
    (scaled, "s-", pictures.ORANGE, "scores divided by √d_k"),
    (plain, "o-", pictures.BLUE, "not divided"),
]:
    axes.plot(lengths, shown, marker, color=colour, label=label)
    for x, y in zip(lengths, shown, strict=True):
        axes.annotate(f"{y:.1%}", (x, y), (0, 6), textcoords="offset points", ha="center")
axes.set_xscale("log", base=4)
axes.set_xticks(lengths, [str(length) for length in lengths])
axes.set(xlabel="$d_k$", ylabel="left of the gradient", ylim=(0, 0.08))
axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
axes.legend(loc="lower left")
pictures.save(figure, "left")

# %% A part of the text of problem 07. Its last tenth is held out.
MODULES = "argparse ast calendar configparser csv difflib doctest enum pdb pickle random tarfile"


def source(name):
    """Return the source of a module of Python's library, or "" if it does not exist."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).read_text(encoding="utf-8") if spec and spec.has_location else ""


text = "".join(map(source, MODULES.split())).expandtabs(4).replace(" " * 4, "\t")
text = "".join(c for c in text if c in "\t\n" or " " <= c <= "~")
characters = sorted(set(text))
number_of = {character: number for number, character in enumerate(characters)}
data = torch.tensor([number_of[character] for character in text])
training, held_out = data.split([len(data) - len(data) // 10, len(data) // 10])


class Logits(nn.Module):
    """A GPT that returns only its logits."""

    def __init__(self):
        super().__init__()
        config = {"n_positions": 32, "n_embd": 48, "n_layer": 2, "n_head": 4, "dropout": 0.0}
        config = SimpleNamespace(vocab_size=len(characters), bias=True, **config)
        self.gpt = torch_gpt.TinyGPT(config)

    def forward(self, idx):
        """Return the logits (B, T, V)."""
        return self.gpt(idx)[0]


torch.manual_seed(10)
start = Logits()
held_out_batches = [torch_gpt.get_batch(held_out, 32, 64) for _ in range(4)]


# %% Three optimizers.
class Momentum:
    """Gradient descent along a running sum of gradients. With keep=0 this is plain SGD."""

    def __init__(self, parameters, lr, keep=0.9):
        self.parameters, self.lr, self.keep = list(parameters), lr, keep
        self.sums = [torch.zeros_like(p) for p in self.parameters]

    @torch.no_grad()
    def step(self):
        """Subtract lr times its running sum from each parameter."""
        for parameter, kept in zip(self.parameters, self.sums, strict=True):
            kept.mul_(self.keep).add_(parameter.grad)
            parameter -= self.lr * kept

    def zero_grad(self):
        """Clear all gradients."""
        for parameter in self.parameters:
            parameter.grad = None


def some_steps(module):
    """Return the losses of two training steps, and then the loss from evaluate."""
    model, losses = copy.deepcopy(start), []
    optimizer = module.AdamW(model.parameters(), lr=0.01)
    for _ in range(2):
        losses.append(module.train_step(model, *held_out_batches[0], optimizer))
    batches = [held_out_batches[0], [tokens[:5] for tokens in held_out_batches[1]]]
    losses.append(module.evaluate(model, batches))
    return torch.tensor(losses)


right = some_steps(torch_gpt)
yours = pictures.yours(problem, "AdamW, train_step, evaluate", some_steps, right, 1e-3)
is_yours = yours is not None and not pictures.differs(yours, right, 1e-3).any()
code = pictures.students_module(problem) if is_yours else torch_gpt
print("Training with your step." if is_yours else "Training with the course's step.")

OPTIMIZERS = {
    "plain steps": lambda parameters: Momentum(parameters, lr=0.5, keep=0.0),
    "momentum": lambda parameters: Momentum(parameters, lr=0.1),
    "AdamW": lambda parameters: code.AdamW(parameters, lr=0.004),
}


def train(make):
    """Train a copy of the model with the optimizer that `make` returns for its parameters.

    Return the loss of each step, and a dict that maps some steps to the loss of held-out text.
    """
    model, losses, measured = copy.deepcopy(start), [], {}
    optimizer = make(model.parameters())
    torch.manual_seed(11)
    for step in range(steps):
        if step % max(1, steps // 10) == 0:
            measured[step] = code.evaluate(model, held_out_batches)
        losses.append(code.train_step(model, *torch_gpt.get_batch(training, 32, 16), optimizer))
    measured[steps] = code.evaluate(model, held_out_batches)
    return losses, measured


def smooth(losses):
    """Return the mean of the last 20 losses at each step."""
    windows = [losses[max(0, end - 20) : end] for end in range(1, len(losses) + 1)]
    return [math.fsum(window) / len(window) for window in windows]


figure, axes = plt.subplots(figsize=(8, 3.2))
colours = (pictures.BLACK, pictures.ORANGE, pictures.BLUE)
for (name, make), colour in zip(OPTIMIZERS.items(), colours, strict=True):
    losses, measured = train(make)
    last = measured[steps]
    print(f"{name}: training loss {smooth(losses)[-1]:.2f}, held-out loss {last:.2f}")
    axes.plot(range(1, steps + 1), smooth(losses), color=colour, label=f"{name}, training text")
    axes.plot(*zip(*measured.items(), strict=True), "o", ms=4, color=colour, label="held-out text")
axes.set(xlabel="step", ylabel="loss in nats per character")
axes.legend(ncols=3)
pictures.save(figure, "optimizers")
torch.set_num_threads(threads)

# Where dots are above their line, the loss on other text is higher than on the training text. Here
# the text is long and training is short, so dots and lines are close: this model has not
# overfitted yet.
