"""Which problem the name of a file tells, and which it may have meant."""

from __future__ import annotations

import pytest

from grader.intake.did_you_mean import nearest_problem
from grader.intake.problem_names import Problems, problem_from_name, words_of

IDS = ("01-softmax", "02-basic-attention", "10-multi-head-attention")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("01-softmax.py", "01-softmax"),
        ("01_softmax_problem.py", "01-softmax"),
        ("problem_01.py", "01-softmax"),
        ("problem01.py", "01-softmax"),
        ("Problem 10.PY", "10-multi-head-attention"),
        ("multi_head_attention.py", "10-multi-head-attention"),
        ("problem.py", None),
        ("problem-1.py", None),
        ("problem (1).py", None),
        ("01-softmax (1).py", None),
        ("test_softmax.py", None),
        ("softmax_final.py", None),
        ("01-basic-attention.py", None),
        ("softmax.txt", None),
        ("softmax", None),
        (".py", None),
    ],
)
def test_what_the_name_of_a_file_tells(name: str, problem: str | None) -> None:
    assert problem_from_name(name, IDS) == (problem or "")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("softmax_final.py", "01-softmax"),
        ("softmaks.py", "01-softmax"),
        ("02-attention.py", "02-basic-attention"),
        ("problem-1.py", None),
        ("problem.py", None),
        ("notes.txt", None),
    ],
)
def test_what_the_name_of_a_file_may_mean(name: str, problem: str | None) -> None:
    assert nearest_problem(words_of(name), IDS) == (problem or "")


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("problem.py", "02-basic-attention"),
        ("Problem.py", "02-basic-attention"),
        ("problem-1.py", None),
        ("problem (1).py", None),
        ("problem-10.py", "10-multi-head-attention"),
        ("softmax.py", "01-softmax"),
        ("solution.py", None),
        (".py", None),
    ],
)
def test_what_a_name_tells_when_the_problem_is_given(name: str, problem: str | None) -> None:
    """Only the name problem.py is empty; what tells another problem goes on telling it."""
    assert Problems(IDS, given="02-basic-attention").of_file(name) == (problem or "")
