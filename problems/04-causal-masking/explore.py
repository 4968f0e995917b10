"""Picture for problem 04: attention weights with a causal mask.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It draws the results of
your functions. If they are wrong, it draws the expected results below, and frames the cells that
differ. To choose a sentence: `uv run python explore.py "I see the past"`. Without a display, or
with `--save`, it writes the picture to pictures/my_causal_mask.png.
"""

# %% Which words may each word attend to, and with which weights?
import grader.student.script  # noqa: F401  (no file in this folder hides a module)

# isort: split
import matplotlib.pyplot as plt
import torch

from shared import expected, pictures

plt.style.use(pictures.STYLE)
words = pictures.words("the cat sat on the mat")
T = len(words)
scores = torch.randn(T, T, generator=torch.Generator().manual_seed(0))


def mask(module):
    """Return the causal mask (T, T) that a module computes."""
    return module.causal_mask(T)


def weights_by(table):
    """Return a function that computes the weights (T, T) of a module's masked_softmax."""
    return lambda module: module.masked_softmax(scores, table)


right_mask = mask(expected)
your_mask = pictures.yours("04-causal-masking", "causal_mask", mask, right_mask.float())
shown_mask = right_mask if your_mask is None else your_mask.bool()
# Pass your mask to masked_softmax, even if it is wrong, so that each function is checked alone.
with_mask = weights_by(shown_mask)
your_weights = pictures.yours("04-causal-masking", "masked_softmax", with_mask, with_mask(expected))
if your_weights is None:
    your_weights = with_mask(expected)

figure = plt.figure(figsize=(8, 4.3))
shown = [
    pictures.Panel("mask: 1 may be looked at, 0 is hidden", right_mask.float(), your_mask),
    pictures.Panel(
        "weights after this mask and softmax", weights_by(right_mask)(expected), your_weights
    ),
]
pictures.draw_panels(figure, shown, words)
pictures.save(figure, "causal_mask")

# Above the diagonal all weights are 0, so no word attends to a later one. The first word attends
# only to itself, with the weight 1. Each row still sums to 1, since masking comes before softmax.

# %% Does a hidden score change the weights if it is very large?
scores[0, T - 1] = 1e9
right = weights_by(right_mask)
pictures.yours("04-causal-masking", "masked_softmax", right, right(expected))
print("expected in the first row, with a hidden score of 1e9:", right(expected)[0].tolist())

# No, a hidden score has no effect. If a mask only subtracted a large number, an even larger score
# would have an effect.
