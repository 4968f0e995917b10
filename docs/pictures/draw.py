"""Draws the terminal as the README shows it: `uv run python docs/pictures/draw.py`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from grader.author.release import visible_half
from grader.course import own_course
from grader.diagnose.edits import mistakes_of

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100

# The picture embeds no font and uses the reader's monospaced font.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def run(command: list[str], folder: Path) -> str:
    """Return what a command prints, with the terminal's colours."""
    colours = {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder, env=os.environ | colours, capture_output=True, text=True, check=False
    )
    return done.stdout


def draw(name: str, title: str, text: str) -> None:
    """Write `name`.svg with the text as a terminal shows it."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi(text.rstrip()))
        path = Path(__file__).parent / f"{name}.svg"
        console.save_svg(str(path), title=title, code_format=FORMAT, unique_id=name)


def student() -> str:
    """Return the second test run on a solution that forgets the scale."""
    course = own_course()
    (problem,) = course.select(["03"])
    (mistake,) = (m for m in mistakes_of(course, problem) if m.edit.name == "no_scale")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "problems/03-scaled-attention"
        shutil.copytree(ROOT / "problems/03-scaled-attention", folder)
        (folder / "problem.py").write_text(mistake.source, encoding="utf-8")
        (folder / problem.test_file.name).write_text(visible_half(problem), encoding="utf-8")
        shutil.copytree(ROOT / "problems/shared", folder.parent / "shared")
        for name in ("pyproject.toml", "course.toml"):
            shutil.copy(ROOT / name, temporary)
        run([sys.executable, "-m", "pytest"], folder)  # seen once, a mistake is named
        return run([sys.executable, "-m", "pytest"], folder)


def graded_class() -> str:
    """Return the table of the sample class."""
    with tempfile.TemporaryDirectory() as out:
        code = "from grader.cli_instructor import app\nif __name__ == '__main__': app()\n"
        script = Path(out) / "run.py"
        script.write_text(code, encoding="utf-8")
        arguments = ["grade", "examples/class", "--out", f"{out}/reports"]
        return run([sys.executable, str(script), *arguments], ROOT).replace(out + "/", "")


if __name__ == "__main__":
    draw("student", "uv run pytest", student())
    draw("class", "uv run grader grade examples/class --out reports", graded_class())
