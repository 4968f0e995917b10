"""Picture for problem 04: what a causal mask leaves of the weights.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. `--save` writes the picture.
"""

# %% Whose functions are they? Yours, as soon as they agree with the course's on small inputs.
import matplotlib.pyplot as plt
import torch

from grader.student import pictures

plt.style.use(pictures.STYLE)
problem = pictures.folder("04-causal-masking") / "problem.py"
causal_mask = pictures.own_or_course(
    problem, "causal_mask", pictures.causal_mask, lambda causal_mask: causal_mask(3)
)
masked_softmax = pictures.own_or_course(
    problem,
    "masked_softmax",
    pictures.masked_softmax,
    lambda masked_softmax: masked_softmax(
        torch.linspace(-2, 2, 9).view(3, 3), torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0]]) == 1
    ),
)

# %% What may each word look at, and how much weight does it put there?
words = ["the", "cat", "sat", "on", "the", "mat"]
scores = torch.randn(6, 6, generator=torch.Generator().manual_seed(0))
mask = causal_mask(6)
weights = masked_softmax(scores, mask)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 4.3))
pictures.heatmap(left, mask, words, words)
pictures.write_numbers(left, mask, ".0f")
left.set_title("mask: 1 may be looked at, 0 is hidden")
image = pictures.heatmap(right, weights, words, words)
pictures.write_numbers(right, weights)
right.set_title("weights after masking and softmax")
left.set_ylabel("query: the word that looks")
for axes in (left, right):
    axes.set_xlabel("key: the word that is looked at")
pictures.save(figure, "causal_mask")

# Above the diagonal all weights are 0, so no word can look at a later one. The first word has only
# itself and gives it everything. Each row still sums to 1, since masking comes before softmax.

# %% Can a hidden score make a difference, however large it is?
scores[0, 5] = 1e9
print("the first row, beside a hidden score of 1e9:", masked_softmax(scores, mask)[0].tolist())

# No: a hidden score has no say at all. A mask that only subtracts some large number from it would
# let a still larger score through.
