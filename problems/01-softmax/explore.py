"""Pictures for problem 01: the effect of a factor and of a shift on softmax.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It draws the weights of your
softmax. At a wrong weight, a black line shows the expected weight. To choose other scores:
`uv run python explore.py 4 1 0.5`. Without a display, or with `--save`,
it writes the picture to pictures/my_softmax_scale.png.
"""

# %% Use six scores, or the scores that you typed.
import grader.student.script  # noqa: F401  (no file in this folder hides a module)

# isort: split
import matplotlib.pyplot as plt
import torch

from shared import pictures

plt.style.use(pictures.STYLE)
scores = pictures.numbers([0.3, -0.1, -0.2, 0.5, 0.3, 0.7])

# %% What happens to the weights when every score is multiplied by the same number?
factors = (1, 7, 20)
expected = torch.stack([torch.softmax(factor * scores, dim=-1) for factor in factors])
yours = pictures.yours(
    "01-softmax",
    "softmax",
    lambda problem: torch.stack([problem.softmax(f * scores, dim=-1) for f in factors]),
    expected,
)
figure, panels = plt.subplots(1, 3, figsize=(8, 3.2), sharey=True)
for number, (axes, factor) in enumerate(zip(panels, factors, strict=True)):
    weights = None if yours is None else yours[number]
    pictures.bars(axes, [f"{score:.1f}" for score in scores], expected[number], weights)
    axes.set_title("softmax(scores)" if factor == 1 else f"softmax({factor} × scores)")
    axes.set_xlabel("score")
panels[0].set_ylim(0, 1.08)
panels[0].set_ylabel("weight")
pictures.save(figure, "softmax_scale")

# The order of the weights never changes, and the weights of each panel sum to 1. But the weight of
# the largest score grows: 0.25, then 0.73, then 0.98. Softmax depends only on the differences of
# scores, and the factor increases them. So the size of scores is important in problem 03.

# %% And what happens when the same number is added to every score?
shifts = (0, 10, 1000)
# Use float64, as float32 rounds scores near 1000 to four decimals.
shifted = scores.double() + torch.tensor(shifts)[:, None]  # (shifts, scores)
expected = torch.softmax(shifted, dim=-1)
pictures.yours(
    "01-softmax",
    "softmax of shifted scores",
    lambda problem: problem.softmax(shifted, dim=-1),
    expected,
)
for shift, weights in zip(shifts, expected, strict=True):
    print(f"expected, softmax(scores + {shift}):", *(f"{w:.4f}" for w in weights))

# Nothing, as the differences do not change. So your softmax may choose the shift that keeps its
# numbers small.
