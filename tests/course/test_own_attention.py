"""A student's attention from problem 05 can replace the attention that 06 and 07 provide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.code.loading import load_module
from grader.course import own_course
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite

COURSE = own_course()
OWN = COURSE.solution(COURSE.select(["05"])[0]).read_text(encoding="utf-8")
GIVEN = re.compile(r"^class CausalSelfAttention\b.*?(?=^\S)", re.MULTILINE | re.DOTALL)


def with_own_attention(source: str) -> str:
    """Return a correct file in which the class of 05 replaces the provided one."""
    own = OWN[OWN.index("\ndef ") :] + "\n\nCausalSelfAttention = MultiHeadAttention\n\n\n"
    imports = "import math\n\nimport torch\nfrom torch import Tensor, nn\n"
    changed, places = GIVEN.subn(lambda _: imports + own, source)
    assert places == 1
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("number", ["06", "07"])
def test_it_earns_all_points(course_suite: Suite, number: str, tmp_path: Path) -> None:
    (problem,) = COURSE.select([number])
    path = tmp_path / "problem.py"
    source = COURSE.solution(problem).read_text(encoding="utf-8")
    path.write_text(with_own_attention(source), encoding="utf-8")
    session = Session(LocalFiles(lambda _: path), hidden=True, diagnose=False)
    course_suite.run(session, [problem])
    result = session.results[problem.id]
    assert [test.message for test in result.tests if test.message] == []
    assert result.points == result.max


@pytest.mark.parametrize("number", ["06", "07"])
def test_no_argument_is_taken_for_another(number: str) -> None:
    """If it were passed by position, `bias=False` would be read as `causal=False`."""
    (problem,) = COURSE.select([number])
    given = load_module(problem.original, f"given_{number}").CausalSelfAttention
    with pytest.raises(TypeError, match="positional"):
        given(8, 2, 0.0, False)
    assert given(n_embd=8, n_head=2, dropout=0.1, bias=False).causal
