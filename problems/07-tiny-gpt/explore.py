"""Train your GPT until it writes, and look at what its heads look at.

Run `uv run python explore.py`. It takes a minute or two on one core; Ctrl-C ends the training and
keeps what was learned. As long as your code isn't right, it trains the course's model and says so.

    --steps 300     so many steps and no more (3000)
    --minutes 0.5   so many minutes and no more
    --no-mask       the same without the causal mask: see what the mask is for
    --save          write the pictures to pictures/my_NAME.png, as it does without a display

The best model is kept in model.pt, for problems 08 and 09. Run it cell by cell in VS Code or
Jupyter, if you like.
"""

# %% What it reads: the source of Python's own library, as it is on this machine.
import grader.student.script  # noqa: F401  (no file beside this one hides another)

# isort: split
import argparse
import importlib.util
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from grader.student import expected_gpt, pictures, trained

options = argparse.ArgumentParser(description="Train a tiny GPT.", allow_abbrev=False)
options.add_argument(
    "--steps", type=int, help="how many steps to train (3000; without the mask 600)"
)
options.add_argument("--minutes", type=float, default=60.0, help="how long to train at most")
options.add_argument("--no-mask", action="store_true", help="let every token see the future")
options.add_argument("--save", action="store_true", help="write the pictures to files")
options.add_argument("--readme", action="store_true", help=argparse.SUPPRESS)
in_script = Path(sys.argv[0]).name == "explore.py"
asked = options.parse_args(None if in_script else [])
if asked.steps is not None and asked.steps < 1:
    options.error("--steps wants 1 or more")
console = Console(highlight=False)
plt.style.use(pictures.STYLE)
torch.manual_seed(7)
threads = torch.get_num_threads()
torch.set_num_threads(1)  # a model so small gains nothing from more, and others may need them

MODULES = """
    argparse ast bdb calendar cmd configparser contextlib copy csv dataclasses difflib doctest
    enum fractions functools heapq inspect mailbox optparse pdb pickle pprint random shutil
    smtplib socket statistics subprocess tarfile tempfile textwrap threading timeit trace
    traceback turtle typing urllib.parse urllib.request uuid weakref
"""
TAB = "\t"  # stands for four spaces, or the model would learn little else


def source(name):
    """Return the source of a module of Python's own library; nothing if it isn't there."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).read_text(encoding="utf-8") if spec and spec.has_location else ""


text = "".join(map(source, MODULES.split())).expandtabs(4).replace(" " * 4, TAB)
text = "".join(c for c in text if c in "\t\n" or " " <= c <= "~")
characters = "".join(sorted(set(text)))
number_of = {character: number for number, character in enumerate(characters)}


def encode(text):
    """Return the tokens of a text, one for each character."""
    return torch.tensor([number_of[character] for character in text.replace(" " * 4, TAB)])


def decode(tokens):
    """Return the text of some tokens."""
    return "".join(characters[token] for token in tokens).replace(TAB, " " * 4)


data = encode(text)
print(f"The text has {len(data):,} characters, {len(characters)} different ones.")

# %% Your code, or the course's.
problem = "07-tiny-gpt"
sizes = {"vocab_size": len(characters), "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4}
config = argparse.Namespace(**sizes, dropout=0.0, bias=True)
right = expected_gpt.TinyGPT(config).double()
x, y = expected_gpt.get_batch(data, 24, 2)


def answers(model):
    """Return what a model says of a few characters: its logits, and their loss."""
    logits, loss = model(x, y)
    return torch.cat([logits.flatten(), loss.reshape(1)])


def students(module):
    """Return what the student's GPT says, with the weights of the course's."""
    model = module.GPT(module.GPTConfig(**vars(config))).double()
    model.load_state_dict(right.gpt2_weights(), strict=False)
    return answers(model)


def pairs_drawn(module):
    """Return 1 if what get_batch draws is so made that y comes after x, and 0 otherwise."""
    x, y = module.get_batch(torch.arange(500), 16, 8)
    return ((x.diff() == 1).all() & (y == x + 1).all()).double()


bar = expected_gpt.bigram_loss(data, len(characters))
piece = data[:50_000]  # of a whole library, counting in a loop takes half a minute
expected = {
    "GPT": (students, answers(right).detach()),
    "get_batch": (pairs_drawn, torch.ones((), dtype=torch.float64)),
    "bigram_loss": (
        lambda module: torch.tensor(module.bigram_loss(piece, len(characters))).double(),
        torch.tensor(expected_gpt.bigram_loss(piece, len(characters)), dtype=torch.float64),
    ),
}
found = {name: pictures.yours(problem, name, *how) for name, how in expected.items()}
is_yours = all(
    found[name] is not None and not pictures.differs(found[name], right).any()
    for name, (_, right) in expected.items()
)
code = pictures.students_module(problem) if is_yours else expected_gpt
print("Training your model." if is_yours else "Training the course's model.")


# %% Training.
class SeesAll(nn.Module):
    """The same attention without its mask: a token sees those that come after it, too."""

    def __init__(self, attention):
        super().__init__()
        self.c_attn, self.c_proj = attention.c_attn, attention.c_proj

    def forward(self, x):
        """Let every token gather from all."""
        heads = self.c_attn(x).unflatten(-1, (3, config.n_head, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*heads)
        return self.c_proj(y.transpose(1, 2).flatten(2))


def make_model(mask):
    """Return a new model, the student's or the course's."""
    if not is_yours:
        model = expected_gpt.TinyGPT(config)
        model.causal = mask
        return model
    model = code.GPT(code.GPTConfig(**vars(config)))
    for block in [] if mask else model.transformer.h:
        block.attn = SeesAll(block.attn)
    return model


@torch.no_grad()
def write(model, prompt, length=160):
    """Return a prompt, continued by drawing each character by its probability."""
    model.eval()
    tokens = encode(prompt)[None]
    for _ in range(length):
        logits, _ = model(tokens[:, -config.n_positions :])
        drawn = torch.distributions.Categorical(logits=logits[:, -1] / 0.8).sample()
        tokens = torch.cat([tokens, drawn[:, None]], dim=1)
    model.train()
    return decode(tokens[0].tolist())


def show(title, text):
    """Print a sample, each line after a bar."""
    lines = "\n".join(f"  | {line}" for line in text.splitlines())
    console.print(f"{title}\n{lines}", markup=False, soft_wrap=True)


def rate(step, steps):
    """Return the learning rate: up in 50 steps, then down to a tenth."""
    return 6e-3 * min((step + 1) / 50, 1 - 0.9 * step / steps)


def train(model, steps):
    """Train a model, and return the loss of every step."""
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.99))
    losses, end = [], time.monotonic() + 60 * asked.minutes
    shown = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*shown, console=console) as progress:
        task = progress.add_task("", total=steps)
        try:
            for step in range(steps):
                for group in optimizer.param_groups:
                    group["lr"] = rate(step, steps)
                _, loss = model(*code.get_batch(data, config.n_positions, 16))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
                now = f"step {step + 1}: loss {recent(losses):.2f}, bigram bar {bar:.2f}"
                progress.update(task, advance=1, description=now)
                if step + 1 in (10, 100, 300, 1000, 2000):
                    show(
                        f"After {step + 1} steps, loss {recent(losses):.2f}:", write(model, "def ")
                    )
                if time.monotonic() > end:
                    break
        except KeyboardInterrupt:
            console.print("Stopped.")
    return losses


def recent(losses):
    """Return the mean of the last 50 losses."""
    last = losses[-50:] or [float("nan")]
    return sum(last) / len(last)


started = time.monotonic()
model = make_model(mask=not asked.no_mask)
count = sum(weight.numel() for weight in model.parameters())
print(f"{count:,} parameters. A model that sees one character only gets a loss of {bar:.2f}.")
losses = train(model, asked.steps or (600 if asked.no_mask else 3000))
taken = time.monotonic() - started
told = f"after {len(losses)} {'step' if len(losses) == 1 else 'steps'} and {taken:.0f} seconds"
if not losses:
    raise SystemExit("Nothing was learned yet, so nothing is kept.")
print(f"The loss is {recent(losses):.3f} {told}.")
state = model.state_dict() if is_yours else model.gpt2_weights()
if not asked.no_mask:
    new = trained.Trained(vars(config), state, characters, recent(losses), is_yours)
    pictures.say(trained.keep(new))
show("What it writes:", write(model, "def ", 400))

if asked.no_mask and recent(losses) > bar / 2:
    pictures.say("Until the loss goes to 0 it takes some 400 steps: let it train longer.")
elif asked.no_mask:
    pictures.say(
        "The loss goes to 0, and the text is nonsense. With nothing hidden, a position sees the "
        "next token in its input, and copies it. So the model learns to look one to the right, "
        "and nothing about text; and when it writes, there is nothing to the right. The mask "
        "takes the answers away. What is left to learn is to guess them."
    )

# %% The loss, beside the bar.
curves = {"without the mask" if asked.no_mask else "with the mask": losses}
if asked.readme:
    model = make_model(mask=False)
    curves["without the mask"] = train(model, 600)
    show("Without the mask it writes:", write(model, "def ", 400))
figure, axes = plt.subplots(figsize=(8, 3.2))
colours = [pictures.ORANGE if "without" in name else pictures.BLUE for name in curves]
for (name, each), colour in zip(curves.items(), colours, strict=True):
    smooth = [recent(each[: step + 1]) for step in range(len(each))]
    axes.plot(range(1, len(each) + 1), each, color=colour, alpha=0.25, linewidth=0.7)
    axes.plot(range(1, len(each) + 1), smooth, color=colour, label=name)
axes.axhline(bar, color=pictures.BLACK, linestyle="--", linewidth=1)
axes.text(len(losses), bar + 0.05, f"bigram bar: {bar:.2f}", ha="right", va="bottom")
axes.set(xlabel="step", ylabel="loss in nats per character", ylim=(0, None))
axes.legend()
pictures.save(figure, "loss")

# %% What the heads look at.
reader = expected_gpt.TinyGPT(config)
reader.load_gpt2_weights(state)
reader.causal = not asked.no_mask
sentence = "    def run(self, name):\n"
tokens = encode(sentence)
weights = reader.attention_weights(tokens)  # (n_layer, n_head, T, T)
labels = [
    {TAB: "→", "\n": "↵", " ": "␣"}.get(characters[token], characters[token]) for token in tokens
]


def favourite(table):
    """Say how far from itself a character looks most, on average."""
    shares = {back: table.diagonal(-back).sum().item() / len(table) for back in range(-8, 9)}
    back = max(shares, key=shares.get)
    where = "itself" if back == 0 else f"{abs(back)} {'back' if back > 0 else 'ahead'}"
    return f"{where}: {shares[back]:.0%}"


figure, panels = plt.subplots(config.n_layer, config.n_head, figsize=(8, 4.4), squeeze=False)
for layer, row in enumerate(panels):
    for head, axes in enumerate(row):
        pictures.heatmap(axes, weights[layer, head], labels, labels)
        axes.tick_params(labelsize=5)
        axes.set_title(f"layer {layer}, head {head}\n{favourite(weights[layer, head])}", fontsize=8)
pictures.save(figure, "heads")
torch.set_num_threads(threads)

# Each row is a character that looks, each column one that is looked at. Under each title stands
# how far back a character looks most, on average, and with what share of its weight.
