"""The place that a failing test prints is in the student's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Problem
from grader.result import ProblemResult, Status, TestResult
from grader.student.report import place_of

SOURCE = "import torch\n\n\ndef scores(q, k):\n    return q\n\n\nclass Model:\n    pass\n"


def place(folder: Path, title: str, message: str) -> str:
    problem = Problem(folder / "01-softmax")
    problem.folder.mkdir(exist_ok=True)
    problem.stub.write_text(SOURCE, encoding="utf-8")
    test = TestResult("test_a", title, False, 1, Status.FAILED, message)
    return place_of(problem, ProblemResult(problem.id, tests=[test]))


@pytest.mark.parametrize(
    ("title", "message", "line"),
    [
        ("scores are dot products", "scores(q, k)\n  got 1", "4"),
        ("The model has layers", "Model(4).layer is missing", "8"),
        ("Model calls scores", "", "8"),
    ],
)
def test_it_is_the_line_of_what_the_test_names(
    title: str, message: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert place(tmp_path, title, message) == f"01-softmax/problem.py:{line}"


def test_an_exception_has_its_own(tmp_path: Path) -> None:
    assert place(tmp_path, "scores", "ValueError: no\n  problem.py:5, in scores: return q") == ""


def test_without_a_name_there_is_none(tmp_path: Path) -> None:
    assert place(tmp_path, "The loss falls", "It is 3.") == ""
