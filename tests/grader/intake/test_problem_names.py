"""Which problem the name of a file tells."""

from __future__ import annotations

import pytest

from grader.intake.problem_names import problem_from_name

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
