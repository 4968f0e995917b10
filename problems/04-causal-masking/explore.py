"""Picture for problem 04: the weights that a causal mask leaves.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It draws the results of
your functions. If they are wrong, it draws the expected ones below, and frames the cells that
differ. To choose a sentence: `uv run python explore.py "I see the past"`. Without a display, or
with `--save`, it writes the picture to pictures/my_causal_mask.png.
"""

# %% Which words may each word look at, and how much weight does it put there?
import grader.student.script  # noqa: F401  (no file in this folder hides another)

# isort: split
import matplotlib.pyplot as plt
import torch

from shared import expected, pictures

plt.style.use(pictures.STYLE)
words = pictures.words("the cat sat on the mat")
T = len(words)
scores = torch.randn(T, T, generator=torch.Generator().manual_seed(0))


def mask(module):
    """Return this module's causal mask: (T, T)."""
    return module.causal_mask(T)


def weights_by(table):
    """Return a function that computes a module's weights with a mask: (T, T)."""
    return lambda module: module.masked_softmax(scores, table)


right_mask = mask(expected)
own_mask = pictures.yours("04-causal-masking", "causal_mask", mask, right_mask.float())
shown_mask = right_mask if own_mask is None else own_mask.bool()
# Each function is judged by itself: this one behind your mask, whether it is right or not.
behind = weights_by(shown_mask)
own_weights = pictures.yours("04-causal-masking", "masked_softmax", behind, behind(expected))
if own_weights is None:
    own_weights = behind(expected)

figure = plt.figure(figsize=(8, 4.3))
shown = [
    pictures.Panel("mask: 1 may be looked at, 0 is hidden", right_mask.float(), own_mask),
    pictures.Panel(
        "weights after this mask and softmax", weights_by(right_mask)(expected), own_weights
    ),
]
pictures.draw_panels(figure, shown, words)
pictures.save(figure, "causal_mask")

# Above the diagonal all weights are 0, so no word can look at a later one. The first word has only
# itself and gives it everything. Each row still sums to 1, since masking comes before softmax.

# %% Can a hidden score make a difference, however large it is?
scores[0, T - 1] = 1e9
right = weights_by(right_mask)
pictures.yours("04-causal-masking", "masked_softmax", right, right(expected))
print("expected in the first row, beside a hidden score of 1e9:", right(expected)[0].tolist())

# No: a hidden score counts for nothing. A mask that only subtracts some large number from it would
# let a still larger score through.
