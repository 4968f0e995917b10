"""Picture for problem 08: the effect of temperature, top-k and top-p. And a model that writes.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It draws the results of your
functions. Where these are wrong, bars are orange, and a line shows the expected value. The dots
show how often `sample` drew each word. To choose k and p:
`uv run python explore.py 2 0.5`. Without a display, or with `--save`, it writes the picture to
pictures/my_cuts.png.

`uv run python explore.py --talk` uses the model that you trained in problem 07. You type the
beginning of a text; the model continues it, and your `sample` draws each character. `--talk NAME`
chooses one of several models. `--talk --mine` builds the model from your code, from the softmax of
01 to the cache of 09.
"""

# %% Five words that may come after "the cat sat on the", and a model's logits for them.
import grader.student.script  # noqa: F401  (so that no file in this folder hides a module)

# isort: split
import sys

import matplotlib.pyplot as plt
import torch

from shared import pictures, talk_command
from shared.oracles import sampling

if "--talk" in sys.argv:
    talk_command.main(sys.argv[1:])
    sys.exit()
typed = pictures.numbers([3, 0.9]).tolist()

plt.style.use(pictures.STYLE)
words = ["moon", "mat", "idea", "roof", "sofa"]
logits = torch.tensor([1.0, 4.0, 0.0, 2.0, 3.0])
temperatures = (0.5, 1.0, 2.0)
at_temperatures = torch.stack([logits / t for t in temperatures])  # (3, 5)

k = max(1, int(typed[0]))
p = typed[1] if len(typed) > 1 and 0 < typed[1] <= 1 else 0.9
options = ({}, {"top_k": k}, {"top_p": p})


def scaled(module):
    """Return the probabilities of all words at each temperature."""
    return torch.stack([module.apply_temperature(logits, t) for t in temperatures]).softmax(-1)


def after_top_k(module):
    """Return the probabilities after top-k at each temperature."""
    return module.keep_top_k(at_temperatures.clone(), k).softmax(-1)


def after_top_p(module):
    """Return the probabilities after top-p at each temperature."""
    return module.keep_top_p(at_temperatures.clone(), p).softmax(-1)


columns = {
    "all words": ("apply_temperature", scaled),
    f"top-k with k = {k}": ("keep_top_k", after_top_k),
    f"top-p with p = {p:g}": ("keep_top_p", after_top_p),
}
right = [compute(sampling) for _, compute in columns.values()]
yours = [
    pictures.yours("08-sampling", name, compute, table)
    for (name, compute), table in zip(columns.values(), right, strict=True)
]

# %% How often does sample draw each word?
drawn = torch.stack(right)  # (columns, temperatures, words)


def counted(module):
    """Return the share of 20,000 rows for which sample draws each word, for each option."""
    torch.manual_seed(8)
    rows = logits.repeat(20_000, 1)
    tokens = [module.sample(rows, t, **cut) for cut in options for t in temperatures]
    counts = torch.stack([each.bincount(minlength=len(words)) for each in tokens])
    return counts.view_as(drawn) / len(rows)


def shares(module):
    """Return the share of each word, or the expected share if they differ by less than 0.02."""
    counts = counted(module)
    return torch.where((counts - drawn).abs() < 0.02, drawn, counts)


dots = counted(sampling)
if (your_shares := pictures.yours("08-sampling", "sample", shares, drawn)) is not None:
    dots = your_shares

# %% Bars for probabilities, dots for drawn tokens.
figure, grid = plt.subplots(3, 3, figsize=(8, 5.4), sharex=True, sharey=True)
for column, title in enumerate(columns):
    for row, temperature in enumerate(temperatures):
        axes = grid[row, column]
        table = right[column] if yours[column] is None else yours[column]
        pictures.bars(axes, words, right[column][row], table[row])
        for label, probability in zip(axes.texts, table[row], strict=True):
            if probability == 0:
                label.set_text("out")
        axes.plot(dots[column, row], "o", color=pictures.BLACK, markersize=3)
        axes.set_ylim(0, 1.15)
        if column == 0:
            axes.set_ylabel(f"T = {temperature:g}\nprobability")
    grid[0, column].set_title(title)
figure.suptitle("the cat sat on the ...", fontsize=10)
pictures.save(figure, "cuts")

# Each row shows one temperature. A cut removes words and gives their probability to the others.
# Top-k removes the same number at every temperature. Top-p removes more at a low temperature.
