"""A correct file that begins with star imports gets all points."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from typer.testing import CliRunner

from grader.cli_instructor import app
from grader.course import own_course

pytestmark = pytest.mark.slow

MODULES = (
    *("torch", "torch.nn", "torch.nn.functional", "torch.linalg", "torch.optim"),
    *("torch.autograd", "math", "numpy"),
)
STARS = "".join(f"from {name} import *\n" for name in (*MODULES, "builtins"))
"""The last import restores Python's `sum`, `max` and others, which the references use."""

FUTURE = "from __future__ import annotations\n"


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    """Return a submission with all references, each with star imports at its beginning."""
    for problem in own_course().problems():
        source = own_course().solution(problem).read_text(encoding="utf-8").replace(FUTURE, "")
        folder = tmp_path / "class/ada" / problem.id
        folder.mkdir(parents=True)
        (folder / "problem.py").write_text(FUTURE + STARS + source, encoding="utf-8")
    return tmp_path / "class/ada"


def test_star_imports_lose_no_points(submission: Path, tmp_path: Path, lent: None) -> None:
    out = tmp_path / "out"
    words = ["grade", str(submission.parent), "--out", str(out), "--jobs", "1"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    with (out / "gradebook.csv").open(encoding="utf-8-sig", newline="") as file:
        (row,) = csv.DictReader(file)
    marks = {problem.id: float(row[problem.id]) for problem in own_course().problems()}
    assert marks == {problem.id: problem.entry.points for problem in own_course().problems()}
