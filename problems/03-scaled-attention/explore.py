"""Pictures for problem 03: why scores are divided by √d_k.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It draws the results of
your functions next to the expected results, and frames the cells that differ. To choose other
dimensions: `uv run python explore.py 4 16 4096`. Without a display, or with `--save`, it writes the
pictures to pictures/my_variance.png and pictures/my_saturation.png.
"""

# %% Use these dimensions of vectors, or those that you typed.
import grader.student.script  # noqa: F401  (no file in this folder hides a module)

# isort: split
import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F

from shared import expected, pictures

plt.style.use(pictures.STYLE)
sizes_of_tables = [max(1, int(size)) for size in pictures.numbers([64, 256, 1024])[:3]]
sizes = np.array([1, *range(32, 513, 32)])


def variances(module):
    """Return the unscaled and the scaled variance of dot products for each dimension."""
    generator = torch.Generator().manual_seed(0)
    return torch.tensor(
        [
            [module.dot_product_variance(d, 5_000, scaled, generator) for d in sizes.tolist()]
            for scaled in (False, True)
        ]
    )


law = torch.stack([torch.tensor(sizes), torch.ones(len(sizes))])  # the expected variances
yours = pictures.yours("03-scaled-attention", "dot_product_variance", variances, law, 0.2)
not_scaled, scaled = (variances(expected) if yours is None else yours).tolist()


# %% How large is the variance of dot products of random vectors, and how does it grow with d?
@torch.no_grad()
def variance_in_new_layers(d):
    """Return the variance of scaled scores in a new attention of width d, for x from N(0, 1)."""
    variances = []
    for seed in range(8):
        torch.manual_seed(seed)
        query, key = torch.nn.Linear(d, d), torch.nn.Linear(d, d)
        x = torch.randn(2, 1_000, d)
        variances.append(((query(x[0]) * key(x[1])).sum(-1) / d**0.5).var().item())
    return np.mean(variances)


random = np.random.default_rng(0)
figure, grid = plt.subplot_mosaic(
    [["3", "normal"], ["100", "uniform"], ["1000", "scaled"]], figsize=(8, 6.6)
)
for d in (3, 100, 1000):
    axes, dots = grid[str(d)], pictures.dot_products(random.standard_normal, d)
    axes.hist(dots, bins=np.linspace(-100, 100, 81), color=pictures.BLUE)
    text = f"d = {d}\nvariance {dots.var():.0f}"
    axes.text(0.03, 0.95, text, transform=axes.transAxes, va="top")
    axes.set_ylabel("pairs")
grid["3"].set_title("Dot products of N(0, 1) vectors")
grid["1000"].set_xlabel("q · k")


def draw_line(axes, name, factor, variances):
    """Draw the measured variances, and the straight line of the expected variances."""
    slope = np.dot(sizes, variances) / np.dot(sizes, sizes)  # least squares through 0
    fitted = f"measured, fitted slope {slope:.4f}"
    axes.plot(sizes, variances, "o", color=pictures.BLUE, ms=4, label=fitted)
    label = f"expected: {name}, slope {factor:.4f}"
    axes.plot(sizes, factor * sizes, color=pictures.BLACK, lw=1, label=label)


uniform = [pictures.dot_products(random.random, d).var() for d in sizes]
draw_line(grid["normal"], "d", 1, not_scaled)
draw_line(grid["uniform"], "7 d / 144", 7 / 144, uniform)
new_layers = [variance_in_new_layers(int(d)) for d in sizes[1:]]
for name, place, numbers, constant, mark, colour in (
    ("entries from N(0, 1)", sizes, scaled, 1, "s", pictures.ORANGE),
    ("q and k from new layers", sizes[1:], new_layers, 1 / 9, "^", pictures.BLUE),
):
    label = f"{name}, mean {np.mean(numbers):.2f}"
    grid["scaled"].plot(place, numbers, mark, ms=4, color=colour, label=label)
    grid["scaled"].axhline(constant, color=pictures.BLACK, lw=1)
    number = "1" if constant == 1 else "1/9"
    grid["scaled"].text(515, constant + 0.03, number, ha="right", va="bottom")
grid["scaled"].set_ylim(0, 1.45)
grid["normal"].set_title("Variance of q · k, entries from N(0, 1)")
grid["uniform"].set_title("Variance of q · k, entries uniform on [0, 1)")
grid["scaled"].set_title("Variance of q · k / √d")
grid["scaled"].set_xlabel("d")
for name in ("normal", "uniform", "scaled"):
    grid[name].set_ylabel("variance")
    grid[name].legend(loc="center right" if name == "scaled" else "upper left")
pictures.save(figure, "variance")

# Each of the d products q_i k_i adds its variance: 1 if the entries are from N(0, 1), and 7/144 if
# they are uniform on [0, 1). So the variance grows linearly with d. Dividing the dot products by √d
# divides their variance by d, so it does not depend on d: it is 1 for entries from N(0, 1), and 1/9
# for new layers, as the entries of their queries and keys have the variance 1/3.


# %% What do large scores do to attention, and to learning?
def random_vectors(n, m, d):
    """Return random queries (n, d) and keys (m, d), always the same for the same sizes."""
    generator = torch.Generator().manual_seed(d)
    return torch.randn(n, d, generator=generator), torch.randn(m, d, generator=generator)


def weights(n, m, d, scale):
    """Return attention weights (n, m) of random queries and keys, with scores times `scale`."""
    q, k = random_vectors(n, m, d)
    return F.softmax(q @ k.T * scale, dim=-1)


def weights_by(module, d):
    """Return the weights that a module's attention function computes for vectors of dimension d."""
    # with the identity as values, the output equals the weights
    return module.scaled_dot_product_attention(*random_vectors(8, 8, d), torch.eye(8))


def slope_of_softmax(weights):
    """Return, for each row, the norm of the matrix of derivatives d weight_i / d score_j."""
    jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    return jacobian.norm(dim=(-2, -1))


right = torch.stack([weights(8, 8, d, d**-0.5) for d in sizes_of_tables])
yours = pictures.yours(
    "03-scaled-attention",
    "scaled_dot_product_attention",
    lambda problem: torch.stack([weights_by(problem, d) for d in sizes_of_tables]),
    right,
)
rows = {"not scaled": torch.stack([weights(8, 8, d, 1) for d in sizes_of_tables]), "scaled": right}
if yours is not None and pictures.differs(yours, right).any():
    rows["yours"] = yours
figure = plt.figure(figsize=(8, 3.9))
left, side = figure.subfigures(1, 2, width_ratios=(1.25, 1))
tables = left.subplots(len(rows), len(sizes_of_tables), squeeze=False)
for (name, by_size), line in zip(rows.items(), tables, strict=True):
    for column, axes in enumerate(line):
        image = pictures.heatmap(axes, by_size[column])
        if name == "yours":
            pictures.frame(axes, pictures.differs(by_size[column], right[column]), 0.7)
    line[0].set_ylabel(f"{name}\nquery")
for axes, d_k in zip(tables[0], sizes_of_tables, strict=True):
    axes.set_title(f"$d_k$ = {d_k}")
for axes in tables[-1]:
    axes.set_xlabel("key")
left.colorbar(image, ax=tables, location="bottom", label="attention weight", aspect=40)

axes = side.subplots()
lengths = [2**power for power in range(1, 11)]
for scaled, marker, colour in ((True, "s-", pictures.ORANGE), (False, "o-", pictures.BLUE)):
    slopes = [slope_of_softmax(weights(2000, 8, d, d**-0.5 if scaled else 1)) for d in lengths]
    medians = [slope.median().item() for slope in slopes]
    axes.loglog(lengths, medians, marker, color=colour, label="scaled" if scaled else "not scaled")
axes.set_xticks([4, 16, 64, 256, 1024], ["4", "16", "64", "256", "1024"])
axes.minorticks_off()
axes.set_title("Gradient through softmax")
axes.set_xlabel("$d_k$")
axes.set_ylabel("size of d weights / d scores (median)")
axes.legend()
pictures.save(figure, "saturation")

# Both rows of tables have the same queries and keys. Without scaling, a query soon has nearly all
# of its weight on one key. Then its weights hardly depend on the scores: for half of the queries at
# d_k = 1024, the gradient is almost 0, so little is learned. With scaling, the tables and the
# gradient are similar for every dimension.
