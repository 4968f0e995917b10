"""Pictures for problem 01: what softmax makes of scores, and what it doesn't look at.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. `--save` writes the picture.
"""

# %% Whose softmax is it? Yours, as soon as it agrees with torch's on a small table.
import matplotlib.pyplot as plt
import torch

from grader.student import pictures

plt.style.use(pictures.STYLE)
softmax = pictures.own_or_course(
    pictures.folder("01-softmax") / "problem.py",
    "softmax",
    torch.softmax,
    lambda softmax: softmax(torch.tensor([[1.0, 2.0, 4.0], [0.5, 3.0, -1.0]]), dim=0),
)
scores = torch.tensor([0.3, -0.1, -0.2, 0.5, 0.3, 0.7])

# %% What happens to the weights when every score is multiplied by the same number?
figure, panels = plt.subplots(1, 3, figsize=(8, 3.2), sharey=True)
for axes, factor in zip(panels, (1, 7, 20), strict=True):
    weights = softmax(factor * scores, dim=-1).tolist()
    bars = axes.bar(range(len(scores)), weights, color=pictures.BLUE)
    axes.bar_label(bars, fmt="%.2f", fontsize=8, padding=2)
    axes.set_xticks(range(len(scores)), [f"{score:.1f}" for score in scores])
    axes.set_title("softmax(scores)" if factor == 1 else f"softmax({factor} × scores)")
    axes.set_xlabel("score")
panels[0].set_ylim(0, 1.08)
panels[0].set_ylabel("weight")
pictures.save(figure, "softmax_scale")

# The order of the weights never changes and each panel sums to 1, but the largest score takes more
# and more: 0.25 of the weight, then 0.73, then 0.98. Softmax looks at differences between scores,
# and the factor stretches them. This is why the size of scores matters so much in problem 03.

# %% And what happens when the same number is added to every score?
for shift in (0, 10, 1000):
    print(f"softmax(scores + {shift}):", [f"{w:.4f}" for w in softmax(scores + shift, dim=-1)])

# Nothing, but for the rounding of float32: the differences stay as they are. So softmax is free to
# choose the shift that keeps its numbers small.
