"""The location that a failing test prints is in the student's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Problem
from grader.result import ProblemResult, Status, TestResult
from grader.student.report import where_to_look

SOURCE = "import torch\n\n\ndef scores(q, k):\n    return q\n\n\nclass Model:\n    pass\n"


def place(folder: Path, title: str, message: str, source: str = SOURCE) -> str:
    problem = Problem(folder / "problems/01-softmax")
    for file, content in ((problem.stub, source), (problem.kept_stub, SOURCE)):
        file.parent.mkdir(parents=True)
        file.write_text(content, encoding="utf-8")
    test = TestResult("test_a", title, False, 1, Status.FAILED, message)
    return where_to_look(problem, ProblemResult(problem.id, tests=[test]))


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
    assert place(tmp_path, title, message) == f"Your code: problems/01-softmax/problem.py:{line}"


def test_an_exception_has_its_own(tmp_path: Path) -> None:
    assert place(tmp_path, "scores", "ValueError: no\n  problem.py:5, in scores: return q") == ""


def test_without_a_name_there_is_none(tmp_path: Path) -> None:
    assert place(tmp_path, "The loss falls", "It is 3.") == ""


@pytest.mark.parametrize("source", ["", "import torch\n"])
def test_an_emptied_file_names_the_command_for_the_stub(source: str, tmp_path: Path) -> None:
    line = place(tmp_path, "scores", "problem.py has no `scores`.", source)
    assert line == "For the stub again: uv run grader reset 01"


def test_a_syntax_error_keeps_the_work(tmp_path: Path) -> None:
    assert place(tmp_path, "scores", "'(' was never closed", "def scores(") == ""
