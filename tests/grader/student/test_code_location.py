"""A failing test prints where the tested code is in the student's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Problem
from grader.result import ProblemResult, Status, TestResult
from grader.student.report import where_to_look

SOURCE = "import torch\n\n\ndef scores(q, k):\n    return q\n\n\nclass Model:\n    pass\n"


def shown_place(folder: Path, title: str, message: str, source: str) -> str:
    problem = Problem(folder / "problems/01-softmax")
    for file, content in ((problem.stub, source), (problem.kept_stub, SOURCE)):
        file.parent.mkdir(parents=True)
        file.write_text(content, encoding="utf-8")
    test = TestResult("test_a", title, False, 1, Status.FAILED, message)
    return where_to_look(problem, ProblemResult(problem.id, tests=[test]))


YOURS = "Your code: problems/01-softmax/problem.py:"
RESET = "To restore the stub: uv run grader reset 01"


@pytest.mark.parametrize(
    ("title", "message", "source", "expected"),
    [
        ("scores are dot products", "scores(q, k)\n  got 1", SOURCE, f"{YOURS}4"),
        ("The model has layers", "Model(4).layer is missing", SOURCE, f"{YOURS}8"),
        ("Model calls scores", "", SOURCE, f"{YOURS}8"),
        ("The loss falls", "It is 3.", SOURCE, ""),
        # The message already contains the place of the exception.
        ("scores", "ValueError: no\n  problem.py:5, in scores: return q", SOURCE, ""),
        ("scores", "problem.py has no `scores`.", "", RESET),
        ("scores", "problem.py has no `scores`.", "import torch\n", RESET),
        # A file with a syntax error may contain work, so `reset` is not suggested.
        ("scores", "'(' was never closed", "def scores(", ""),
    ],
)
def test_the_place_is_in_the_function_or_class_that_the_test_names(
    title: str,
    message: str,
    source: str,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_place(tmp_path, title, message, source) == expected
