"""Picture for problem 04: what a causal mask leaves of the weights.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It draws what your functions
give; where that is wrong, what is expected stands below it, and the cells that differ are framed.
A sentence of your own: `uv run python explore.py "I see the past"`. `--save` writes the picture
to pictures/my_causal_mask.png.
"""

# %% What may each word look at, and how much weight does it put there?
import grader.student.script  # noqa: F401  (no file beside this one hides another)

# isort: split
import matplotlib.pyplot as plt
import torch

from grader.student import expected, pictures

plt.style.use(pictures.STYLE)
words = pictures.words("the cat sat on the mat")
T = len(words)
scores = torch.randn(T, T, generator=torch.Generator().manual_seed(0))


def mask(module):
    """Return this module's causal mask: (T, T)."""
    return module.causal_mask(T)


def weights(module):
    """Return the weights after this module's masking, by the expected mask: (T, T)."""
    return module.masked_softmax(scores, mask(expected))


def panel(title, name, table):
    """Return what there is to draw of one function."""
    right = table(expected).float()
    return pictures.Panel(title, right, pictures.yours("04-causal-masking", name, table, right))


figure = plt.figure(figsize=(8, 4.3))
shown = [
    panel("mask: 1 may be looked at, 0 is hidden", "causal_mask", mask),
    panel("weights after masking and softmax", "masked_softmax", weights),
]
pictures.draw_panels(figure, shown, words)
pictures.save(figure, "causal_mask")

# Above the diagonal all weights are 0, so no word can look at a later one. The first word has only
# itself and gives it everything. Each row still sums to 1, since masking comes before softmax.

# %% Can a hidden score make a difference, however large it is?
scores[0, T - 1] = 1e9
pictures.yours("04-causal-masking", "masked_softmax", weights, weights(expected))
print("expected in the first row, beside a hidden score of 1e9:", weights(expected)[0].tolist())

# No: a hidden score has no say at all. A mask that only subtracts some large number from it would
# let a still larger score through.
