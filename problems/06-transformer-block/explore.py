"""Pictures for problem 06: the effect of GELU and LayerNorm, and a stack of twelve blocks.

Run `uv run python explore.py`, or cell by cell in VS Code or Jupyter. It draws the results of your
code. Where these are wrong, the expected ones are drawn in black. To choose a row:
`uv run python explore.py 3 1 4 1 5 9`. Without a display, or with `--save`, it writes the pictures
to pictures/my_gelu_and_norm.png and pictures/my_twelve_blocks.png.
"""

# %% GELU, and LayerNorm of three rows.
import grader.student.script  # noqa: F401  (so that no file in this folder hides a module)

# isort: split
import math

import matplotlib.pyplot as plt
import torch

from shared import expected, pictures

plt.style.use(pictures.STYLE)
x = torch.linspace(-4, 4, 401)
row = pictures.numbers([2.0, 1, 3, 2, 6, 4, 3, 5])
rows = {
    "a row": row,
    "the same times 3": 3 * row,
    "the same minus 8": row - 8,
}


def gelu_of_x(module):
    """Return the result of a module's gelu for x."""
    return module.gelu(x)


def normalised_rows(module):
    """Return the three rows after a module's LayerNorm, (3, C)."""
    return module.LayerNorm(len(row))(torch.stack(list(rows.values())))


def both_results(name, compute):
    """Return the expected result and your result.

    If your code has no result yet, return the expected one twice.
    """
    right = compute(expected).detach()
    yours = pictures.yours("06-transformer-block", name, compute, right)
    return right, right if yours is None else yours


figure, (left, before, after) = plt.subplots(1, 3, figsize=(8, 2.9), width_ratios=(1.5, 1, 1))
right, yours = both_results("gelu", gelu_of_x)
left.axhline(0, color="lightgrey", lw=0.8)
left.plot(x, x.relu(), color=pictures.ORANGE, label="ReLU")
left.plot(x, yours, color=pictures.BLUE, label="GELU")
if pictures.differs(yours, right).any():
    left.plot(x, right, "--", color=pictures.BLACK, label="GELU, expected")
left.set_ylim(-1, 4)
left.set_title("GELU is a ReLU with a soft corner")
left.set_xlabel("x")
left.legend()

right, yours = both_results("LayerNorm", normalised_rows)
places = range(len(row))
marks = zip(rows.items(), "os^", (pictures.BLUE, pictures.ORANGE, "#009E73"), strict=True)
for number, ((name, numbers), mark, colour) in enumerate(marks):
    before.plot(places, numbers, f"{mark}-", color=colour, ms=4, label=name)
    # The lines coincide, so each has marks of a different size.
    after.plot(places, yours[number], f"{mark}-", color=colour, ms=9 - 3 * number, mfc="none")
if pictures.differs(yours, right).any():
    after.plot(places, right.T, "--", color=pictures.BLACK)
    after.set_title("after yours; expected: black")
else:
    after.set_title("all three after LayerNorm")
before.set_title("three rows")
before.margins(y=0.5)
before.legend(fontsize=7, loc="upper left")
for axes in (before, after):
    axes.set_xlabel("place in the row")
pictures.save(figure, "gelu_and_norm")

# The three rows have the same pattern. LayerNorm removes the mean and the spread of each row, so
# the results are the same.

# %% A token goes through twelve blocks. How large does it get, and how much of it is left?
depth, n_embd, n_head = 12, 64, 4
tokens = torch.randn(4, 16, n_embd, generator=torch.Generator().manual_seed(1)).double()


def weights_of(number):
    """Return random weights for block `number`, by name.

    They are scaled so that the output of each layer is about as large as its input.
    """
    generator = torch.Generator().manual_seed(100 + number)
    shapes = {
        "attn.c_attn": (3, 1),
        "attn.c_proj": (1, 1),
        "mlp.c_fc": (4, 1),
        "mlp.c_proj": (1, 4),
    }
    weights = {}
    for name, (n_out, n_in) in shapes.items():
        weight = torch.randn(n_out * n_embd, n_in * n_embd, generator=generator)
        weights[f"{name}.weight"] = weight / math.sqrt(n_in * n_embd)
        weights[f"{name}.bias"] = torch.zeros(n_out * n_embd)
    for name in ("ln_1", "ln_2"):
        weights[f"{name}.weight"], weights[f"{name}.bias"] = torch.ones(n_embd), torch.zeros(n_embd)
    return weights


def blocks_of(module, norm_first):
    """Return twelve blocks of a module, each a function of x.

    Args:
        module: a module that defines Block, such as problem.py.
        norm_first: whether the norms are before the parts (pre-norm) or after the sums (post-norm).
    """
    stack = []
    for number in range(depth):
        if module is expected:
            block = module.Block(n_embd, n_head, norm_first)
            block.set_weights(weights_of(number))
        else:
            block = module.Block(n_embd, n_head)
            block.load_state_dict(weights_of(number), strict=False)
        block = block.double()
        stack.append(block if norm_first or module is expected else with_norms_after(block))
    return stack


def with_norms_after(block):
    """Return a post-norm block with the same parts, as in the first transformer."""

    def forward(x):
        x = block.ln_1(x + block.attn(x))
        return block.ln_2(x + block.mlp(x))

    return forward


@torch.no_grad()
def sizes_and_similarities(module):
    """Return the size of x after 0 to 12 blocks, and its similarity to the first x.

    The result has the shape (2, 2, 13). The axes are: size or similarity, pre-norm or post-norm,
    and the number of blocks.
    """
    results = []
    for norm_first in (True, False):
        stages = [tokens]
        for block in blocks_of(module, norm_first):
            stages.append(block(stages[-1]))
        stages = torch.stack(stages)  # (13, B, T, C)
        sizes = stages.square().mean((1, 2, 3)).sqrt()
        likeness = torch.cosine_similarity(stages, tokens, dim=-1).mean((1, 2))
        results.append(torch.stack([sizes, likeness]))
    return torch.stack(results, dim=1)


right, yours = both_results("Block", sizes_and_similarities)
figure, grid = plt.subplots(1, 2, figsize=(8, 3.1))
titles = ("How large a token is", "How much of its first self is in it")
for axes, title, sizes, expected_sizes in zip(grid, titles, yours, right, strict=True):
    for number, (name, mark) in enumerate([("pre-norm", "o-"), ("post-norm", "s-")]):
        colour = (pictures.BLUE, pictures.ORANGE)[number]
        axes.plot(range(depth + 1), sizes[number], mark, color=colour, ms=4, label=name)
        if pictures.differs(sizes[number], expected_sizes[number]).any():
            style = {"color": pictures.BLACK, "label": f"{name}, expected"}
            axes.plot(range(depth + 1), expected_sizes[number], "--", **style)
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.set_xlabel("blocks that it went through")
    axes.legend()
grid[0].set_ylabel("root of the mean square")
grid[1].set_ylabel("cosine of the angle between them")
pictures.save(figure, "twelve_blocks")

for number, name in enumerate(("pre-norm", "post-norm")):
    sizes, likeness = yours[:, number, -1].tolist()
    similar = f"its cosine with the first token is {likeness:.2f}"
    print(f"{name}: after {depth} blocks a token has size {sizes:.2f}, and {similar}.")

# With norms after the sums, each norm shrinks all earlier parts of the sum. After twelve blocks
# almost nothing is left of the first x, and little of the output of the first blocks. With norms
# before the parts, no norm is on the residual path: each half adds to x, so x grows slowly and
# still contains the input.
