"""Pictures for problem 03: why scores are divided by √d_k.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. `--save` writes the pictures.
"""

# %% Whose functions are they? Yours, as soon as they agree with the course's on small inputs.
import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from grader.student import pictures

plt.style.use(pictures.STYLE)
problem = pictures.folder("03-scaled-attention") / "problem.py"
attention = pictures.own_or_course(
    problem,
    "scaled_dot_product_attention",
    F.scaled_dot_product_attention,
    lambda attention: attention(*torch.linspace(-2, 2, 36).view(3, 3, 4)),
)
generator = torch.Generator().manual_seed(0)
dot_product_variance = pictures.own_or_course(
    problem,
    "dot_product_variance",
    pictures.dot_product_variance,
    lambda variance: torch.tensor(  # random, so all one can ask is that it is near
        [
            abs(variance(20, 20_000, False, generator) - 20) < 2,
            abs(variance(20, 20_000, True, generator) - 1) < 0.1,
        ]
    ),
)

# %% How far do the dot products of random vectors spread, and how does this grow with d?
random, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
figure, grid = plt.subplot_mosaic(
    [["3", "normal"]] * 2 + [["100", "normal"], ["100", "uniform"]] + [["1000", "uniform"]] * 2,
    figsize=(8, 5),
)
for d in (3, 100, 1000):
    axes, dots = grid[str(d)], pictures.dot_products(random.standard_normal, d)
    axes.hist(dots, bins=np.linspace(-100, 100, 81), color=pictures.BLUE)
    text = f"d = {d}\nvariance {dots.var():.0f}"
    axes.text(0.03, 0.95, text, transform=axes.transAxes, va="top")
    axes.set_ylabel("pairs")
grid["3"].set_title("Dot products of N(0, 1) vectors")
grid["1000"].set_xlabel("q · k")

sizes = np.array([1, *range(32, 513, 32)])
normal = [dot_product_variance(d, 5_000, False, generator) for d in sizes]
uniform = [pictures.dot_products(random.random, d).var() for d in sizes]
measured = [("normal", "d", 1, normal), ("uniform", "7 d / 144", 7 / 144, uniform)]
for name, law, factor, variances in measured:
    slope = np.dot(sizes, variances) / np.dot(sizes, sizes)  # least squares through 0
    fitted = f"measured, fitted slope {slope:.4f}"
    grid[name].plot(sizes, variances, "o", color=pictures.BLUE, label=fitted)
    label = f"law: {law}, slope {factor:.4f}"
    grid[name].plot(sizes, factor * sizes, color=pictures.BLACK, label=label)
    grid[name].set_ylabel("variance")
scaled = [dot_product_variance(d, 5_000, True, generator) for d in sizes]
label = f"divided by √d first, mean {np.mean(scaled):.2f}"
grid["normal"].plot(sizes, scaled, "s", ms=4, color=pictures.ORANGE, label=label)
grid["normal"].set_title("Variance of q · k, entries N(0, 1)")
grid["uniform"].set_title("Variance of q · k, entries uniform on [0, 1)")
grid["uniform"].set_xlabel("d")
grid["normal"].legend()
grid["uniform"].legend()
pictures.save(figure, "variance")

# Each of the d products q_i k_i adds its own variance: 1 if the entries are N(0, 1), and 7/144 if
# they are uniform on [0, 1). So the variance is a straight line in d. Dividing the dot products by
# √d divides their variance by d, and for N(0, 1) it stays near 1 at every size.

# %% What do large scores do to attention, and to learning?
generator = torch.Generator().manual_seed(0)


def both_weights(n, m, d):
    """Return the weights of n random queries on m random keys, without scaling and with it."""
    q, k = torch.randn(n, d, generator=generator), torch.randn(m, d, generator=generator)
    values = torch.eye(m)  # one-hot values: the output is the weights
    return attention(q * d**0.5, k, values), attention(q, k, values)  # √d takes the scaling back


def slope_of_softmax(weights):
    """Return the size of the matrix of derivatives d weight_i / d score_j, row by row."""
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    return jacobian.norm(dim=(-2, -1))


figure = plt.figure(figsize=(8, 3.9))
left, right = figure.subfigures(1, 2, width_ratios=(1.25, 1))
tables = left.subplots(2, 3)
for column, d_k in enumerate((64, 256, 1024)):
    for axes, weights in zip(tables[:, column], both_weights(8, 8, d_k), strict=True):
        image = pictures.heatmap(axes, weights)
    tables[0, column].set_title(f"$d_k$ = {d_k}")
    tables[1, column].set_xlabel("key")
tables[0, 0].set_ylabel("not scaled\nquery")
tables[1, 0].set_ylabel("scaled\nquery")
left.colorbar(image, ax=tables, location="bottom", label="attention weight", aspect=40)

axes = right.subplots()
sizes = [2**power for power in range(1, 11)]
slopes = [[slope_of_softmax(w).median().item() for w in both_weights(2000, 8, d)] for d in sizes]
not_scaled, scaled = zip(*slopes, strict=True)
axes.loglog(sizes, scaled, "s-", color=pictures.ORANGE, label="scaled")
axes.loglog(sizes, not_scaled, "o-", color=pictures.BLUE, label="not scaled")
axes.set_xticks([4, 16, 64, 256, 1024], ["4", "16", "64", "256", "1024"])
axes.minorticks_off()
axes.set_title("Gradient through softmax")
axes.set_xlabel("$d_k$")
axes.set_ylabel("size of d weights / d scores (median)")
axes.legend()
pictures.save(figure, "saturation")

# Above and below, the same queries meet the same keys. Without scaling a row soon puts all its
# weight on one key, and there softmax is flat: for half of the queries at d_k = 1024 hardly any
# gradient comes through, so there is little to learn from. With scaling both the tables and the
# gradient look alike at every size.
