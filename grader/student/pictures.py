"""What the course's pictures are made with, and the command that draws them all.

The functions at the end stand in for a student's own until those work. They say what comes out, not
how one gets there: each hands the work to one of PyTorch's built-in functions.

Run `uv run python -m grader.student.pictures` to write every picture of the course.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from grader.course import own_course
from grader.loading import STUDENT_MODULE, load_module

BLUE, ORANGE, BLACK = "#0072B2", "#E69F00", "#000000"
"""From Okabe and Ito's palette: told apart by colour-blind readers, and in grey."""

STYLE: dict[str, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "figure.constrained_layout.use": True,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "image.cmap": "cividis",
    "legend.fontsize": 8,
    "legend.frameon": False,
    "savefig.dpi": 150,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
"""For `plt.style.use`. A figure 8 inches wide is saved 1200 pixels wide."""

Own = TypeVar("Own", bound=Callable[..., Any])


def folder(problem_id: str) -> Path:
    """Return a problem's folder; unlike `__file__`, this works in a notebook too."""
    return own_course().root / "problems" / problem_id


def own_or_course(
    problem_file: Path, name: str, course: Own, check: Callable[[Own], Tensor]
) -> Own:
    """Return the student's function or class if it works, else the course's; print which.

    Args:
        problem_file: the student's `problem.py`.
        name: what the function or class is called there.
        course: what to use in its place.
        check: calls what it is given on a small input. The student's is used when its result is
            the same as the course's.
    """
    try:
        module = load_module(problem_file, STUDENT_MODULE + problem_file.parent.name[:2])
        own: Own = getattr(module, name)
        trouble = "" if _same(check(own), check(course)) else "yours gives other numbers so far"
    except NotImplementedError:
        trouble = "yours is not written yet"
    except Exception as exception:
        trouble = f"yours stops with {type(exception).__name__}"
    print(f"{name}: the course's own, as {trouble}." if trouble else f"{name}: yours.")
    return course if trouble else own


def _same(own: Any, expected: Tensor) -> bool:
    return (
        isinstance(own, Tensor)
        and own.dtype == expected.dtype
        and own.shape == expected.shape
        and torch.allclose(own, expected, atol=1e-5)
    )


def dot_products(
    draw: Callable[[int], NDArray[np.float64]], d: int, n_pairs: int = 5_000
) -> NDArray[np.float64]:
    """Return the dot products of pairs of random vectors of length d, one per pair.

    Args:
        draw: gives so many random numbers.
        d: how long each vector is.
        n_pairs: how many pairs there are.
    """
    products = np.zeros(n_pairs)
    for _ in range(d):  # one place in all vectors at a time
        products += draw(n_pairs) * draw(n_pairs)
    return products


def same_weights(module: nn.Module) -> nn.Module:
    """Give a module's parameters numbers that depend on their names and shapes alone."""
    with torch.no_grad():
        for seed, (_, parameter) in enumerate(sorted(module.named_parameters())):
            generator = torch.Generator().manual_seed(seed)
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module


def heatmap(
    axes: Axes, weights: Tensor, queries: Sequence[str] = (), keys: Sequence[str] = ()
) -> AxesImage:
    """Draw a table of numbers from 0 to 1 as colours: a row per query, a column per key.

    Args:
        axes: where to draw.
        weights: the table, shape (queries, keys).
        queries: the labels of the rows; without them the rows have no labels.
        keys: the labels of the columns; without them the columns have no labels.
    """
    image = axes.imshow(weights.detach().numpy(), vmin=0, vmax=1)
    axes.set_xticks(range(len(keys)), keys)
    axes.set_yticks(range(len(queries)), queries)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def write_numbers(axes: Axes, weights: Tensor, form: str = ".2f") -> None:
    """Write each number of a heatmap into its cell, light on dark and dark on light."""
    for (row, column), weight in np.ndenumerate(weights.detach().double().numpy()):
        colour = "white" if weight < 0.5 else "black"
        axes.text(column, row, format(weight, form), color=colour, ha="center", va="center")


def save(figure: Figure, name: str) -> None:
    """Write a figure to pictures/NAME.png beside the script if `--save` is asked, else show it."""
    if "--save" in sys.argv:
        path = Path(sys.argv[0]).resolve().parent / "pictures" / f"{name}.png"
        path.parent.mkdir(exist_ok=True)
        # No name of the software inside: the same figure gives the same file.
        png = io.BytesIO()
        figure.savefig(png, metadata={"Software": None})
        # 256 colours are plenty here and make the file a third of the size.
        Image.open(png).convert("RGB").quantize(256).save(path, optimize=True)
        print(f"Wrote pictures/{path.name}.")
    elif plt.get_backend().lower() == "agg":
        print(f"No display here: run this with --save to write pictures/{name}.png.")
    else:
        plt.show()
    plt.close(figure)


def draw_all(root: Path) -> None:
    """Run every problem's explore.py with `--save`.

    Raises:
        subprocess.CalledProcessError: one of them fails.
    """
    environment = {**os.environ, "MPLBACKEND": "agg"}
    for script in sorted((root / "problems").glob("*/explore.py")):
        print(script.parent.name, flush=True)
        subprocess.run([sys.executable, str(script), "--save"], env=environment, check=True)


# The course's own, where a student's isn't ready. torch.softmax serves 01 as it is, and
# F.scaled_dot_product_attention serves 03.


class SimpleAttention(nn.Module):
    """Problem 02's layer, by PyTorch's built-in attention."""

    def __init__(self, n_embd: int = 768, bias: bool = True) -> None:
        super().__init__()
        for name in ("query", "key", "value"):
            self.add_module(name, nn.Linear(n_embd, n_embd, bias=bias))

    def forward(self, x: Tensor) -> Tensor:
        """Return the attention's output; scale=1 means unscaled."""
        q, k, v = (layer(x) for layer in self.children())
        return F.scaled_dot_product_attention(q, k, v, scale=1.0)


def dot_product_variance(
    d_k: int, n_pairs: int, scaled: bool, generator: torch.Generator | None = None
) -> float:
    """Measure problem 03's variance without any vectors.

    The dot product of q and k is distributed as the length of q times one N(0, 1) number, and the
    squared length of q as chi-squared.
    """
    seed = int(torch.randint(2**31, (), generator=generator))
    random = np.random.default_rng(seed)
    dots = np.sqrt(random.chisquare(d_k, n_pairs)) * random.standard_normal(n_pairs)
    return float(dots.var()) / (d_k if scaled else 1)


def causal_mask(seq_len: int, device: torch.device | None = None) -> Tensor:
    """Return problem 04's mask, made from PyTorch's mask of 0 and -inf."""
    return nn.Transformer.generate_square_subsequent_mask(seq_len, device=device) == 0


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Return problem 04's weights: attention whose scores and values are given outright."""
    identity = torch.eye(scores.shape[-1], dtype=scores.dtype)
    return F.scaled_dot_product_attention(scores, identity, identity, attn_mask=mask, scale=1.0)


class MultiHeadAttention(nn.Module):
    """Problem 05's layer without mask and dropout, by PyTorch's built-in one."""

    def __init__(self, n_embd: int = 768, n_head: int = 12, bias: bool = True) -> None:
        super().__init__()
        self.n_embd, self.n_head = n_embd, n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = nn.Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output for x, shape (B, T, C); the built-in function wants (T, B, C)."""
        x = x.transpose(0, 1)
        packed = self.c_attn.weight, self.c_attn.bias
        output, _ = F.multi_head_attention_forward(
            x, x, x, self.n_embd, self.n_head, *packed, None, None, False, 0.0,
            self.c_proj.weight, self.c_proj.bias, need_weights=False,
        )  # fmt: skip
        return output.transpose(0, 1)


if __name__ == "__main__":
    draw_all(own_course().root)
