"""In every problem, code that leaves gradients switched off is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import own_course
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite

COURSE = own_course()

# Off only after what asks for no gradient: the next test begins with gradients switched on.
LEAVES = """

def _leaving(function):
    def left(*args, **kwargs):
        found = function(*args, **kwargs)
        given = [*args, *kwargs.values()]
        torch.set_grad_enabled(any(getattr(each, "requires_grad", False) for each in given))
        return found
    return left
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "function"),
    [
        ("01", "dot_product_similarity"),
        ("01", "softmax"),
        ("02", "SimpleAttention.forward"),
        ("03", "scaled_dot_product_attention"),
        ("03", "dot_product_variance"),
        ("04", "CausalAttention.forward"),
        ("05", "MultiHeadAttention.forward"),
        ("06", "gelu"),
        ("07", "get_batch"),
        ("07", "GPT.generate"),
        ("08", "keep_top_k"),
        ("08", "sample"),
        ("09", "CachedGPT.generate"),
    ],
)
def test_gradients_left_off_are_told(
    course_suite: Suite, tmp_path: Path, number: str, function: str
) -> None:
    """One failing test that reports it is enough."""
    (problem,) = (each for each in COURSE.problems() if each.id.startswith(number))
    file = tmp_path / "problem.py"
    text = COURSE.solution(problem).read_text(encoding="utf-8")
    file.write_text(f"{text}{LEAVES}\n\n{function} = _leaving({function})\n", encoding="utf-8")
    session = Session(LocalFiles(lambda problem: file), hidden=True, diagnose=False)

    def output() -> bool:
        tests = session.results[problem.id].tests if problem.id in session.results else []
        return any("leaves gradients switched off" in test.message for test in tests)

    course_suite.run(session, [problem], enough=output)
    assert output()
