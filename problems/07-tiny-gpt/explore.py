"""Train your GPT until it writes text, and draw the attention weights of its heads.

Run `uv run python explore.py`. It takes a minute or two on one core, and uses a GPU if there is
one. Ctrl-C ends the training and keeps the best model so far. Until your code is correct, it trains
the course's model. A tenth of the text is held out: no model trains on it, so its loss
shows how well the model generalizes.

    --mine           use your code for every part: softmax (01), attention (05), block (06),
                     model (07) and training step (10), if it is correct
    --text alice     train on Alice in Wonderland
    --text FILE ...  train on texts of your choice, in any script, in UTF-8
    --resume         continue to train the kept model of this text
    --first 10000    read only this many characters: see a model learn them by heart
    --gpt2 FILE      don't train: load a GPT-2 checkpoint (safetensors) into your GPT, and see how
                     it continues; "course" is a small one that the course has trained
    --tokens N ...   the token numbers that GPT-2 continues
    --name NAME      keep the model under this name (default: that of the first FILE)
    --steps 300      train for this many steps (default: 3000)
    --minutes 0.5    train for at most this many minutes
    --seed 7         draw the random numbers from this seed, to repeat a run
    --no-mask        train without the causal mask: see why it is needed
    --save           write the pictures to pictures/my_NAME.png, as is done without a display;
                     pictures of earlier runs are kept

The best model is kept in model.pt, or in model-NAME.pt, for problems 08 and 09. If you
like, run this file cell by cell in VS Code or Jupyter.
"""

# %% What to do.
import grader.student.script  # noqa: F401  (so that no file in this folder hides a module)

# isort: split
import argparse
import copy
import random
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from grader.errors import UsageError
from shared import (
    accelerator,
    explore_checkpoint,
    pictures,
    saved_models,
    student_parts,
    training_text,
)
from shared.oracles import torch_gpt

options = argparse.ArgumentParser(description="Train a tiny GPT.", allow_abbrev=False)
options.add_argument("--mine", action="store_true", help="use your code for every part")
options.add_argument("--text", nargs="+", default=[], metavar="FILE", help="texts to train on")
options.add_argument("--resume", action="store_true", help="continue to train the kept model")
options.add_argument("--first", type=int, help="number of characters to read; default: all")
options.add_argument("--gpt2", metavar="FILE", help="a checkpoint in GPT-2's layout")
options.add_argument("--tokens", type=int, nargs="+", help="token numbers that GPT-2 continues")
options.add_argument("--name", help="name of the kept model")
options.add_argument(
    "--steps", type=int, help="number of training steps; default: 3000, without the mask 600"
)
options.add_argument("--minutes", type=float, default=60.0, help="longest time to train")
options.add_argument("--seed", type=int, help="seed of random numbers; default: a random one")
options.add_argument("--no-mask", action="store_true", help="train without the causal mask")
options.add_argument("--save", action="store_true", help="write the pictures to files")
options.add_argument("--readme", action="store_true", help=argparse.SUPPRESS)
in_script = Path(sys.argv[0]).name == "explore.py"
asked = options.parse_args(None if in_script else [])
if asked.steps is not None and asked.steps < 1:
    options.error("--steps must be at least 1")
if asked.mine and asked.no_mask:
    options.error("--no-mask removes the mask from the course's attention; omit --mine")
if asked.resume and asked.no_mask:
    options.error("--resume trains the kept model, which has a mask; omit --no-mask")
if asked.first is not None and asked.first < 1:
    options.error("--first must be at least 1")
console = Console(highlight=False)
plt.style.use(pictures.STYLE)
seed = random.randrange(10_000) if asked.seed is None else asked.seed
seed = 7 if asked.readme else seed
torch.manual_seed(seed)
threads = torch.get_num_threads()
torch.set_num_threads(1)  # on a CPU, more threads don't make such a small model faster

# %% A checkpoint instead of training.
if asked.gpt2:
    raise SystemExit(explore_checkpoint.explore(asked.gpt2, asked.tokens, asked.name, asked.mine))

# %% The text: your files, or the source of Python's library.
n_positions = 64
try:
    name = saved_models.name_for(asked.name, asked.text)
    text = training_text.read(asked.text, n_positions, asked.first)
except UsageError as error:
    raise SystemExit(str(error)) from None
characters, n_characters = text.alphabet.characters, len(text.alphabet.characters)
print(
    f"The text has {len(text.training) + len(text.held_out):,} characters, {n_characters} different"
    f" ones. The last {len(text.held_out):,} are held out. (To repeat: --seed {seed})"
)


def encode(words):
    """Return the tokens of a text, one for each character."""
    return torch.tensor(text.alphabet.encode(words))


# %% Your code, or the course's.
problem = "07-tiny-gpt"
sizes = {"vocab_size": n_characters, "n_positions": n_positions}
sizes |= {"n_embd": 64, "n_layer": 2, "n_head": 4}
config = argparse.Namespace(**sizes, dropout=0.0, bias=True)
try:
    resumed = saved_models.read_to_resume(name, vars(config), characters) if asked.resume else None
except UsageError as error:
    raise SystemExit(str(error)) from None
right = torch_gpt.TinyGPT(config).double()
x, y = torch_gpt.get_batch(text.training, 24, 2)


def answers(model):
    """Return the logits and the loss of a model for x and y, in one tensor."""
    logits, loss = model(x, y)
    return torch.cat([logits.flatten(), loss.reshape(1)])


def students(module):
    """Return the result of `answers` for your GPT with the weights of the course's model."""
    model = module.GPT(module.GPTConfig(**vars(config))).double()
    model.load_state_dict(right.gpt2_weights(), strict=False)
    return answers(model)


def pairs_drawn(module):
    """Return 1 if get_batch draws pieces of the text and y is one token ahead of x, else 0."""
    x, y = module.get_batch(torch.arange(500), 16, 8)
    return ((x.diff() == 1).all() & (y == x + 1).all()).double()


piece = text.training[:50_000]  # a Python loop over the whole text may take half a minute
expected = {
    "GPT": (students, answers(right).detach()),
    "get_batch": (pairs_drawn, torch.ones((), dtype=torch.float64)),
    "bigram_loss": (
        lambda module: torch.tensor(module.bigram_loss(piece, n_characters)).double(),
        torch.tensor(torch_gpt.bigram_loss(piece, n_characters), dtype=torch.float64),
    ),
}
results = {name: pictures.yours(problem, name, *how) for name, how in expected.items()}
is_yours = all(
    results[name] is not None and not pictures.differs(results[name], right).any()
    for name, (_, right) in expected.items()
)
code = pictures.students_module(problem) if is_yours else torch_gpt
parts = student_parts.load_parts() if asked.mine else None
step_code = parts.step if parts else torch_gpt  # AdamW, train_step, evaluate, ...
if parts:
    print(parts.summary())
    your_time = student_parts.seconds_per_step(step_code, parts.model(config), config)
    time_of_step = student_parts.seconds_per_step(torch_gpt, torch_gpt.TinyGPT(config), config)
    times = f"{your_time / time_of_step:.1f} times the course's {1000 * time_of_step:.0f}"
    print(f"A step takes {1000 * your_time:.0f} ms, {times}.")
else:
    print("Training your model." if is_yours else "Training the course's model.")


# %% Training.
class Unmasked(nn.Module):
    """The attention of a block without its mask: a token attends to later tokens, too."""

    def __init__(self, attention):
        super().__init__()
        self.c_attn, self.c_proj = attention.c_attn, attention.c_proj

    def forward(self, x):
        """Let every token attend to all tokens."""
        heads = self.c_attn(x).unflatten(-1, (3, config.n_head, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*heads)
        return self.c_proj(y.transpose(1, 2).flatten(2))


def make_model(mask):
    """Return a new model, the student's or the course's, with or without the causal mask."""
    if parts:
        return parts.model(config)
    if not is_yours:
        model = torch_gpt.TinyGPT(config)
        model.causal = mask
        return model
    model = code.GPT(code.GPTConfig(**vars(config)))
    for block in [] if mask else model.transformer.h:
        block.attn = Unmasked(block.attn)
    return model


@torch.no_grad()
def write(model, prompt, length=160):
    """Return a prompt, continued with characters that are drawn from the model."""
    model.eval()
    tokens = encode(prompt)[None].to(device)
    for _ in range(length):
        logits, _ = model(tokens[:, -n_positions:])
        drawn = torch.distributions.Categorical(logits=logits[:, -1] / 0.8).sample()
        tokens = torch.cat([tokens, drawn[:, None]], dim=1)
    model.train()
    return text.alphabet.decode(tokens[0].tolist())


def show(title, words):
    """Print a title, and a text with a bar before each line."""
    lines = "\n".join(f"  | {line}" for line in words.splitlines())
    console.print(f"{title}\n{lines}", markup=False, soft_wrap=True)


def train(model, text, steps, peak=6e-3):
    """Train a model with a learning rate of at most `peak`, and restore its best weights.

    Return the loss of each step, and a dict that maps some steps to the loss of held-out text.
    """
    reader, losses, measured, best = student_parts.LogitsOnly(model.to(device)), [], {}, None
    batches = [(x.to(device), y.to(device)) for x, y in text.held_out_batches(n_positions)]
    optimizer = step_code.AdamW(reader.parameters(), betas=(0.9, 0.99))
    begun = time.monotonic()

    def measure():
        """Measure the held-out loss, and keep the weights if it is the lowest loss so far."""
        nonlocal best
        measured[len(losses)] = step_code.evaluate(reader, batches)
        if measured[len(losses)] <= min(measured.values()):
            best = copy.deepcopy(model.state_dict())

    if resumed:
        measure()
    shown = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*shown, console=console) as progress:
        task = progress.add_task("", total=steps)
        try:
            for step in range(steps):
                # The learning rate rises to the peak in 50 steps, then falls to a tenth of it.
                warmup = min(50, steps // 2)
                optimizer.lr = step_code.learning_rate(step, warmup, steps, peak, peak / 10)
                x, y = code.get_batch(text.training, n_positions, 16)
                losses.append(step_code.train_step(reader, x.to(device), y.to(device), optimizer))
                if (step + 1) % max(20, steps // 30) == 0:
                    measure()
                now = f"step {step + 1}: loss {recent(losses):.2f}"
                if measured:
                    now += f", held out {[*measured.values()][-1]:.2f}"
                progress.update(task, advance=1, description=now)
                if step + 1 == 50 < steps:
                    left = (time.monotonic() - begun) / 50 * (steps - 50)
                    left = min(left, 60 * asked.minutes)
                    console.print(f"About {left:.0f} seconds to go. Ctrl-C keeps the best model.")
                if step + 1 in (10, 100, 300, 1000, 2000):
                    sample = write(model, text.prompt)
                    show(f"After {step + 1} steps, loss {recent(losses):.2f}:", sample)
                if time.monotonic() - begun > 60 * asked.minutes:
                    break
        except KeyboardInterrupt:
            console.print("Stopped.")
    if losses and len(losses) not in measured:
        measure()
    if best is not None:
        model.load_state_dict(best)
    return losses, measured


def recent(losses):
    """Return the mean of the last 50 losses."""
    last = losses[-50:] or [float("nan")]
    return sum(last) / len(last)


bars = [torch_gpt.bigram_loss(part, n_characters) for part in (text.training, text.held_out)]
bar, held_out_bar = bars
started = time.monotonic()
device, where = accelerator.choose(step_code, lambda: make_model(mask=not asked.no_mask), config)
if where:
    pictures.say(where)
model = make_model(mask=not asked.no_mask)
if resumed and is_yours and not parts:
    model.load_state_dict(resumed.state, strict=False)
elif resumed:
    (parts or student_parts.Parts()).load(model, resumed.state)
count = sum(weight.numel() for weight in model.parameters())
print(
    f"{count:,} parameters. The bigram bar is {bar:.2f}, or {held_out_bar:.2f} for the held-out "
    "text."
)
steps = asked.steps or (600 if asked.no_mask else 3000)
losses, measured = train(model, text, steps, 2e-3 if resumed else 6e-3)
taken = time.monotonic() - started
duration = f"after {len(losses)} {'step' if len(losses) == 1 else 'steps'} and {taken:.0f} seconds"
if not losses:
    raise SystemExit("Nothing was learned yet, so nothing is kept.")
best = min(measured, key=measured.get)
print(
    f"The loss is {recent(losses):.3f} {duration}. On the held-out text it was lowest after step "
    f"{best}: {measured[best]:.3f}."
)
if not asked.no_mask and measured[best] > held_out_bar:
    pictures.say(
        "That is above the bigram bar: the model does not use attention yet. Train longer, or on "
        "more text."
    )
if not asked.no_mask and measured[max(measured)] > measured[best] + 0.1:
    pictures.say(
        f"In the end the loss on the held-out text was {measured[max(measured)]:.2f}, while the "
        "loss on the training text still fell: the model began to learn by heart. That is "
        f"overfitting. The weights of step {best} are kept."
    )
if parts:
    state, is_yours = parts.weights(model), parts["model"] is not None
else:
    state = model.state_dict() if is_yours else model.gpt2_weights()
state = {name: weight.cpu() for name, weight in state.items()}
if not asked.no_mask and (asked.first is None or asked.name):
    new = saved_models.SavedModel(
        vars(config), state, characters, measured[best], is_yours, held_out=True
    )
    pictures.say(saved_models.save(new, name))
show("What it writes:", write(model, text.prompt, 400))

if asked.no_mask and recent(losses) > bar / 2:
    pictures.say("It takes about 400 steps until the loss goes to 0: train longer.")
elif asked.no_mask:
    pictures.say(
        "The loss goes to 0, and the text is nonsense. Without the mask, a position can attend to "
        "the next token, and copies it. So the model learns nothing about text, and when it "
        "writes, there is no next token to copy. The mask hides the answers, so that the model "
        "must learn to predict them."
    )


# %% The losses, and the bars of the bigram model.
def draw_losses(axes, text, curves):
    """Draw the losses of some models, and the loss of the bigram model."""
    for number, (name, (losses, measured)) in enumerate(curves.items()):
        colour = pictures.ORANGE if "without" in name else pictures.BLUE
        steps = range(1, len(losses) + 1)
        smooth = [recent(losses[:step]) for step in steps]
        label = None if number else "each step"
        axes.plot(steps, losses, color=colour, alpha=0.25, linewidth=0.7, label=label)
        axes.plot(steps, smooth, color=colour, label=f"{name}: training")
        axes.plot(*zip(*measured.items(), strict=True), "o:", ms=3, color=colour, label="held out")
    bars = [torch_gpt.bigram_loss(each, n_characters) for each in (text.training, text.held_out)]
    if abs(bars[0] - bars[1]) < 0.05:  # two lines would overlap, so draw one
        axes.axhline(bars[0], color=pictures.BLACK, linestyle="--", linewidth=1, label="bigram bar")
    else:
        for bar, line, of_text in zip(bars, ("--", ":"), ("", ", held out"), strict=True):
            axes.axhline(
                bar, color=pictures.BLACK, linestyle=line, linewidth=1, label=f"bigram bar{of_text}"
            )
    axes.set(
        xlabel="step",
        ylabel="loss in nats per character",
    )
    highest = max(
        *bars, *(max(*losses, *held_out.values()) for losses, held_out in curves.values())
    )
    axes.set_ylim(0, 1.3 * highest)  # leave room for the legend above the curves
    axes.legend(ncols=2, fontsize=7, loc="upper right")


curves = {"without the mask" if asked.no_mask else "with the mask": (losses, measured)}
figure, panels = plt.subplots(1, 1 + asked.readme, figsize=(8, 3.2), squeeze=False, sharey=True)
if asked.readme:
    other = make_model(mask=False)
    curves["without the mask"] = train(other, text, 600)
    show("Without the mask it writes:", write(other, text.prompt, 400))
    part = {"training": text.training[:9000], "held_out": text.training[9000:10_000]}
    short = training_text.TrainingText(text.alphabet, **part, is_the_course_s=True)
    by_heart = {"9,000 characters": train(make_model(mask=True), short, 1500)}
    draw_losses(panels[0, 1], short, by_heart)
draw_losses(panels[0, 0], text, curves)
pictures.save(figure, "loss", each=True)

# %% The attention weights of the heads.
reader = torch_gpt.TinyGPT(config)
reader.load_gpt2_weights(state)
reader.causal = not asked.no_mask
tokens = encode(text.line)
weights = reader.attention_weights(tokens)  # (n_layer, n_head, T, T)
labels = [
    {"\t": "→", "\n": "↵", " ": "␣"}.get(characters[token], characters[token]) for token in tokens
]


def main_distance(table):
    """Return as text the distance at which a head has the largest mean weight, and this weight."""
    shares = {back: table.diagonal(-back).sum().item() / len(table) for back in range(-8, 9)}
    back = max(shares, key=shares.get)
    where = "itself" if back == 0 else f"{abs(back)} {'back' if back > 0 else 'ahead'}"
    return f"{where}: {shares[back]:.0%}"


figure, panels = plt.subplots(
    config.n_layer, config.n_head, figsize=(8, 4.8), squeeze=False, sharex=True, sharey=True
)
for layer, row in enumerate(panels):
    for head, axes in enumerate(row):
        pictures.heatmap(axes, weights[layer, head], labels, labels)
        axes.tick_params(labelsize=8)
        axes.set_title(
            f"layer {layer}, head {head}\n{main_distance(weights[layer, head])}", fontsize=9
        )
pictures.save(figure, "heads", each=True)
torch.set_num_threads(threads)

# A row is the query of a character, a column the key. Each title gives the distance with the
# largest mean weight, and this weight.
