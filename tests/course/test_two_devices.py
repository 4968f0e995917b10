"""A mask that is made of tensors on two devices is told without a GPU."""

from __future__ import annotations

from pathlib import Path

from grader.course import own_course
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite

COURSE = own_course()
MASK = "    return torch.ones(seq_len, seq_len, dtype=torch.bool, device=device).tril()\n"
ON_TWO = """\
    positions = torch.arange(seq_len, device=device)
    return torch.arange(seq_len)[None, :] <= positions[:, None]
"""


def test_it_costs_points_and_is_told(course_suite: Suite, tmp_path: Path) -> None:
    (problem,) = COURSE.select(["04"])
    path = tmp_path / "problem.py"
    source = COURSE.solution(problem).read_text(encoding="utf-8")
    assert source.count(MASK) == 1
    path.write_text(source.replace(MASK, ON_TWO), encoding="utf-8")
    session = Session(LocalFiles(lambda _: path), hidden=True, diagnose=False)
    course_suite.run(session, [problem])
    (message,) = [test.message for test in session.results[problem.id].tests if test.message]
    assert "Tensors of two devices meet, so on a GPU it fails, too." in message
