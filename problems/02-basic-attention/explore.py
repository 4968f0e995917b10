"""Pictures for problem 02: the attention weights of a sentence, and the path of one query.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It draws the weights of your
layer. If they are wrong, it also draws the expected weights, and frames the cells that differ.
To choose another sentence: `uv run python explore.py "cats chase cat toys"`. Without a display, or
with `--save`, it writes pictures/my_attention_weights.png and pictures/my_one_query.png.
"""

# %% What does each word mean? Here: article, animal, action, size (invented for this picture).
import grader.student.script  # noqa: F401  (no file in this folder hides a module)

# isort: split
import matplotlib.pyplot as plt
import numpy as np
import torch

from shared import expected, pictures

plt.style.use(pictures.STYLE)
words = pictures.words("the cat chased the small mouse")
known = {
    "the": [2.0, 0.0, 0.0, 0.0],
    "cat": [0.0, 1.8, 0.6, 0.0],
    "chased": [0.0, 0.3, 2.0, 0.0],
    "small": [0.0, 0.5, 0.0, 1.8],
    "mouse": [0.0, 1.2, 0.2, 1.4],
}
if known.keys() >= {*words}:
    meanings = torch.tensor([known[word] for word in words])
else:  # describe other words by their letters, so that words with common letters are similar
    letters = sorted({*"".join(words)})
    counts = torch.tensor([[float(word.count(letter)) for letter in letters] for word in words])
    meanings = 2 * counts / counts.norm(dim=-1, keepdim=True)

# %% How can you see the weights, when the layer only returns its output?
# Let the value of word i be 1 in entry i and 0 elsewhere. An output is a weighted average of these
# values, so its entries are the weights.
T, M = meanings.shape
x = torch.cat([meanings, torch.eye(T)], dim=-1)  # (T, C): meaning and position
reads_meaning = torch.diag(torch.tensor([1.0] * M + [0.0] * T))
reads_place = torch.diag(torch.tensor([0.0] * M + [1.0] * T))


def attention_weights(module):
    """Return the attention weights (T, T) of the SimpleAttention in a module."""
    layer = module.SimpleAttention(n_embd=M + T, bias=False)
    layer.load_state_dict(
        {"query.weight": reads_meaning, "key.weight": reads_meaning, "value.weight": reads_place},
        strict=False,
    )
    return layer(x[None])[0, :, M:].detach()


right = attention_weights(expected)
yours = pictures.yours("02-basic-attention", "SimpleAttention", attention_weights, right)

# %% Which words does each word attend to?
figure = plt.figure(figsize=(8, 4.5))
pictures.draw_panels(figure, [pictures.Panel("attention weights", right, yours)], words)
pictures.save(figure, "attention_weights")

# Each row sums to 1. "mouse" attends to itself and to "small", so its output describes which mouse
# it is. "cat" attends most to itself, then to "mouse", which has a similar meaning. The two "the"
# have equal rows, since equal words have equal queries: no score depends on the position of a word.

# %% What is computed for one query? This is the first of three in the README's example.
tables = [  # a sign, a name, a table, and the number of its rows that the first query uses
    ("", "queries Q\n(T, C)", [[1, 0], [0, 1], [1, 1]], 1),
    ("@", "keys Kᵀ\n(C, T)", [[1, 1, 2], [0, 1, 1]], 2),
    ("=", "scores\n(1, T)", [[1, 1, 2]], 1),
    ("softmax", "weights, sum 1\n(1, T)", [[0.21, 0.21, 0.58]], 1),
    ("@", "values V\n(T, C)", [[2, 1], [0, -1], [2, 0]], 3),
    ("=", "output\n(1, C)", [[1.58, 0]], 1),
]
figure, axes = plt.subplots(figsize=(8, 1.9))
left = 0.0
for sign, name, table, in_use in tables:
    gap = {"": 0.0, "softmax": 1.6}.get(sign, 0.7)
    axes.text(left + gap / 2, 0.5, sign, ha="center", va="center")
    left += gap
    for (row, column), number in np.ndenumerate(np.array(table)):
        face, ink = (pictures.BLUE, "white") if row < in_use else ("lightgrey", "black")
        axes.add_patch(plt.Rectangle((left + column, row), 1, 1, fc=face, ec="white", lw=2))
        axes.text(left + column + 0.5, row + 0.5, f"{number:g}", ha="center", va="center", c=ink)
    left += len(table[0])
    axes.text(left - len(table[0]) / 2, -0.15, name, ha="center", va="bottom")
axes.set_xlim(-0.1, left + 0.1)
axes.set_ylim(3.1, -1.3)
axes.set_axis_off()
pictures.save(figure, "one_query")

# The dot products of the query with all keys are T scores. Softmax turns them into T weights. The
# output is the average of the T values with these weights. The same is done for the other queries.
