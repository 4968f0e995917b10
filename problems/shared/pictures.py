"""Draw the pictures of the course: functions for explore.py, and a command that draws them all.

Run `uv run python problems/shared/pictures.py` to write every picture of the course.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from grader.code.loading import STUDENT_MODULE, is_stub_error, load_module
from grader.course import OWN_PICTURE, SUBMISSION_FILE, own_course

BLUE, ORANGE, RED, BLACK = "#0072B2", "#E69F00", "#D55E00", "#000000"
"""Colors of Okabe and Ito's palette, which color-blind readers can distinguish, even in gray."""

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
"""The style for `plt.style.use`. A figure of 8 inches is 1200 pixels wide when it is saved."""


def folder(problem_id: str) -> Path:
    """Return the folder of a problem. Unlike `__file__`, this also works in a notebook."""
    return own_course().root / "problems" / problem_id


# The student's results


def words(sentence: str) -> list[str]:
    """Return the words typed after `explore.py`; if there are none, the words of `sentence`."""
    return " ".join(_typed() or [sentence]).split()


def numbers(default: Sequence[float], *options: str) -> Tensor:
    """Return the numbers typed after `explore.py`; if there are none, the default.

    Args:
        default: the default numbers.
        options: further options that the script accepts, such as `--talk`.

    Raises:
        SystemExit: a typed word is not a number.
    """
    try:
        typed = [float(word) for word in " ".join(_typed(*options)).replace(",", " ").split()]
    except ValueError as error:
        raise SystemExit(f"Type numbers, as in: explore.py 1 2.5 -3 ({error})") from None
    return torch.tensor(typed or default)


_OPTION = re.compile(r"--|-(?!inf\b)[a-z]", re.IGNORECASE)
"""Matches the beginning of an option, but not of a negative number."""


def _typed(*options: str) -> list[str]:
    """Return the arguments of explore.py without options, and exit if an option is unknown.

    In a notebook, return an empty list, as the arguments are those of Jupyter.
    """
    if Path(sys.argv[0]).name != "explore.py":
        return []
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("typed", nargs="*", help="input to draw instead of the example")
    parser.add_argument("--save", action="store_true", help="write the pictures to files")
    parser.add_argument("--readme", action="store_true", help=argparse.SUPPRESS)
    for option in options:
        parser.add_argument(option, action="store_true")
    parser.parse_args([word for word in sys.argv[1:] if _OPTION.match(word)])
    return [word for word in sys.argv[1:] if not _OPTION.match(word)]


def yours(
    problem_id: str,
    name: str,
    compute: Callable[[Any], Any],
    expected: Tensor,
    tolerance: float = 1e-4,
) -> Tensor | None:
    """Compute a table with the student's code, and print whether it is correct.

    Args:
        problem_id: the problem of the student's code.
        name: the name of the student's function or class, for the message.
        compute: computes the table; its argument is the student's imported file.
        expected: the expected table.
        tolerance: the relative tolerance.

    Returns:
        The student's table, or None if the code fails or the table has a wrong shape.
    """
    table, trouble = judged(lambda: compute(students_module(problem_id)), expected, tolerance)
    if table is None:
        say(f"{name}: yours {trouble}. The picture shows the expected table.")
    else:
        say(f"{name}: yours {trouble}." if trouble else f"{name}: yours, as expected.")
    return table


def judged(
    compute: Callable[[], Any], expected: Tensor, tolerance: float = 1e-4
) -> tuple[Tensor | None, str]:
    """Compute a table with the student's code, and compare it with the expected table.

    Args:
        compute: computes the table.
        expected: the expected table.
        tolerance: the relative tolerance.

    Returns:
        A pair (table, error). `table` is the student's table, or None if the code fails or the
        table has a wrong shape. `error` is text to be printed after "yours", or "" if the table
        is correct.
    """
    try:
        with redirect_stdout(io.StringIO()):
            result = compute()
        trouble = _unlike(result, expected)
    except Exception as exception:
        stops = f"raises {type(exception).__name__}: {exception}"
        trouble = "is not written yet" if is_stub_error(exception) else stops
    if trouble:
        return None, trouble
    table: Tensor = result.detach().to(expected.dtype)
    wrong = int(differs(table, expected, tolerance).sum())
    if wrong:
        trouble = f"differs from the expected result in {wrong} of {table.numel()} numbers"
    return table, trouble


def say(sentence: str) -> None:
    """Print a sentence, wrapped to the width of the terminal."""
    width = shutil.get_terminal_size().columns
    print(textwrap.fill(sentence, width) if sys.stdout.isatty() else sentence)


def students_module(problem_id: str) -> ModuleType:
    """Import the student's `problem.py` anew, and return it."""
    name = f"{STUDENT_MODULE}shown_{problem_id[:2]}"
    return load_module(folder(problem_id) / SUBMISSION_FILE, name)


def _unlike(result: object, expected: Tensor) -> str:
    """Return the reason why a result and the expected table can't be compared, or ""."""
    if not isinstance(result, Tensor):
        return f"returns {type(result).__name__} instead of a tensor"
    if result.shape != expected.shape:
        return f"returns shape {tuple(result.shape)} instead of {tuple(expected.shape)}"
    return ""


def differs(result: Tensor, expected: Tensor, tolerance: float = 1e-4) -> Tensor:
    """Return a bool table: True where two tables differ by more than the tolerance."""
    return ~torch.isclose(
        result.double(), expected.double(), rtol=tolerance, atol=1e-5, equal_nan=True
    )


def dot_products(
    draw: Callable[[int], NDArray[np.float64]], d: int, n_pairs: int = 5_000
) -> NDArray[np.float64]:
    """Return the dot products of n_pairs pairs of random vectors.

    Args:
        draw: returns a given number of random numbers, which become entries of the vectors.
        d: the number of entries of each vector.
        n_pairs: the number of pairs.
    """
    products = np.zeros(n_pairs)
    for _ in range(d):  # one entry of all vectors at a time
        products += draw(n_pairs) * draw(n_pairs)
    return products


# Drawing


@dataclass(frozen=True)
class Panel:
    """A table to draw.

    Attributes:
        title: the title above the table.
        expected: the expected table.
        yours: the table that the student's code computed, or None.
    """

    title: str
    expected: Tensor
    yours: Tensor | None

    @property
    def wrong(self) -> bool:
        """Whether the student's table differs from the expected table."""
        return self.yours is not None and bool(differs(self.yours, self.expected).any())


def draw_panels(
    figure: Figure, panels: Sequence[Panel], labels: Sequence[str], *, with_numbers: bool = True
) -> None:
    """Draw tables side by side, and frame the student's cells that differ from the expected cells.

    If any of the student's tables is wrong, also draw the expected tables: next to a single table,
    otherwise below the tables.

    Args:
        figure: the figure. Its height is doubled if the expected tables are drawn below.
        panels: the tables, with a row for each query and a column for each key.
        labels: the labels of rows and of columns.
        with_numbers: whether to write the numbers into the cells.
    """
    twice = any(panel.wrong for panel in panels)
    beside = twice and len(panels) == 1
    rows, columns = (2, len(panels)) if twice and not beside else (1, len(panels) + beside)
    figure.set_figheight(figure.get_figheight() * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharey=True)
    right = [Panel(panel.title, panel.expected, None) for panel in panels] if twice else []
    whose = ["yours"] * (twice * len(panels)) + ["expected"] * len(right)
    for place, (axes, panel) in enumerate(zip(grid.flat, [*panels, *right], strict=True)):
        image = _draw_panel(axes, panel, labels, with_numbers)
        if beside:
            axes.set_title(f"{whose[place]}: {panel.title}")
        elif place % columns == 0:
            query = "query: the word that looks" if columns <= 2 else "query"
            axes.set_ylabel(f"{whose[place]}\n{query}" if twice else query)
    for axes in grid.flat:
        if columns > 2 or len(labels) > 6:  # horizontal words would overlap
            axes.tick_params("x", rotation=90)
    for axes in grid[-1]:
        axes.set_xlabel("key: the word that is looked at" if columns <= 2 else "key")
    figure.colorbar(image, ax=grid, label="attention weight", shrink=0.8)


def _draw_panel(axes: Axes, panel: Panel, labels: Sequence[str], with_numbers: bool) -> AxesImage:
    table = panel.expected if panel.yours is None else panel.yours
    image = heatmap(axes, table, labels, labels)
    axes.set_aspect("auto")
    if with_numbers:
        write_numbers(axes, table, ".0f" if bool((table == table.round()).all()) else ".2f")
    axes.set_title(panel.title, fontsize=9)
    frame(axes, differs(table, panel.expected), 2 if with_numbers else 1.2)
    return image


def frame(axes: Axes, cells: Tensor, width: float = 2) -> None:
    """Draw a red frame with a white border around some cells of a heatmap.

    Args:
        axes: the axes that contain the heatmap.
        cells: a bool table; True selects a cell.
        width: the width of the red line in points; small cells need a thin one.
    """
    white = withStroke(linewidth=2 * width, foreground="white")
    for row, column in cells.nonzero().tolist():
        corner = column - 0.42, row - 0.42
        axes.add_patch(
            Rectangle(corner, 0.84, 0.84, fill=False, ec=RED, lw=width, path_effects=[white])
        )


def bars(axes: Axes, labels: Sequence[str], expected: Tensor, yours: Tensor | None) -> None:
    """Draw a bar for each of the student's numbers, or for the expected numbers if `yours` is None.

    If a number is wrong, its bar is orange, and a black line shows the expected number.
    """
    numbers = expected if yours is None else yours
    drawn = axes.bar(range(len(numbers)), numbers.tolist(), color=BLUE)
    axes.bar_label(drawn, fmt="%.2f", fontsize=8, padding=2)
    axes.set_xticks(range(len(numbers)), labels)
    for place in differs(numbers, expected).nonzero().flatten().tolist():
        drawn[place].set_color(ORANGE)
        axes.hlines(expected[place].item(), place - 0.45, place + 0.45, color=BLACK)


def heatmap(
    axes: Axes, weights: Tensor, queries: Sequence[str] = (), keys: Sequence[str] = ()
) -> AxesImage:
    """Draw a table of numbers from 0 to 1 as colors, with a row for each query.

    Args:
        axes: the axes to draw in.
        weights: the table, shape (queries, keys).
        queries: the labels of the rows; by default the rows have no labels.
        keys: the labels of the columns; by default the columns have no labels.
    """
    image = axes.imshow(weights.detach().numpy(), vmin=0, vmax=1)
    axes.set_xticks(range(len(keys)), keys)
    axes.set_yticks(range(len(queries)), queries)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return image


def write_numbers(axes: Axes, weights: Tensor, form: str = ".2f") -> None:
    """Write each number of a heatmap into its cell, in white or black."""
    for (row, column), weight in np.ndenumerate(weights.detach().double().numpy()):
        colour = "white" if weight < 0.5 else "black"
        axes.text(column, row, format(weight, form), color=colour, ha="center", va="center")


def save(figure: Figure, name: str, *, each: bool = False) -> None:
    """Show a figure. With `--save`, or without a display, save it and print the path instead.

    The file is pictures/my_NAME.png in the folder of the script. With `--readme`, an option for
    authors, it is pictures/NAME.png, the picture in the README.

    Args:
        figure: the figure.
        name: NAME in the path.
        each: whether to keep earlier files. If so, the second file is pictures/my_NAME_2.png.
    """
    if {"--save", "--readme"}.isdisjoint(sys.argv) and plt.get_backend().lower() != "agg":
        plt.show()
        plt.close(figure)
        return
    name = name if "--readme" in sys.argv else f"{OWN_PICTURE}{name}"
    path = Path(sys.argv[0]).resolve().parent / "pictures" / f"{name}.png"
    path.parent.mkdir(exist_ok=True)
    number = 2
    while each and "--readme" not in sys.argv and path.exists():
        path = path.with_name(f"{name}_{number}.png")
        number += 1
    # Without the name of the software in the file, equal figures have equal files.
    png = io.BytesIO()
    figure.savefig(png, metadata={"Software": None})
    # With 256 colors, the file is a third as large.
    Image.open(png).convert("RGB").quantize(256).save(path, optimize=True)
    here = path.is_relative_to(Path.cwd())
    print(f"Wrote {path.relative_to(Path.cwd()) if here else path}")
    plt.close(figure)


def draw_all(root: Path) -> None:
    """Draw the pictures of all READMEs by running the explore.py of each problem.

    Raises:
        subprocess.CalledProcessError: a script fails.
    """
    environment = {**os.environ, "MPLBACKEND": "agg"}
    for script in sorted((root / "problems").glob("*/explore.py")):
        print(script.parent.name, flush=True)
        subprocess.run([sys.executable, str(script), "--readme"], env=environment, check=True)


if __name__ == "__main__":
    draw_all(own_course().root)
