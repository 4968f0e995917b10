"""The most helpful lines are visible in a window of 24 lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.course import Course
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite
from grader.student.report import failure_report, problem_report, wrapped
from grader.student.seen import named, reading
from tests.catalogue import mistake_files

WIDTH, HEIGHT = 80, 24
BELOW = 2
"""The number of lines below the report: pytest's last line, and the shell's prompt."""

PITFALLS = {
    "01-softmax": ("no_maximum", "keepdim_forgotten"),
    "02-basic-attention": ("softmax_over_queries", "overflow"),
    "03-scaled-attention": ("scale_by_d_k", "softmax_global_maximum"),
    "04-causal-masking": ("mask_hides_own_position", "renormalised_after_softmax"),
    "05-multi-head-attention": ("heads_by_view", "dropout_on_scores"),
}
"""Mistakes that a problem's README warns of, and mistakes with the longest reports."""


@pytest.mark.slow
@pytest.mark.parametrize("id", PITFALLS)
def test_the_most_helpful_sentence_is_on_the_screen(
    course: Course, id: str, tmp_path: Path
) -> None:
    problem = next(problem for problem in course.problems() if problem.id == id)
    suite = Suite([problem], course.root)
    files = mistake_files(course, problem, tmp_path)
    for mistake in PITFALLS[id]:
        path = files[mistake]
        session = Session(LocalFiles(lambda _, path=path: path))
        suite.run(session)
        result = session.results[id]
        assert result.diagnoses, mistake
        for read in (reading(result, []), named(result)):  # in a first and a later run
            report = problem_report(result, 0, reading=read, width=WIDTH)
            screen = report.splitlines()[-HEIGHT + BELOW :]
            for line in failure_report(result, reading=read, width=WIDTH).splitlines():
                assert line in screen, f"{mistake}: {line}"


def test_continued_lines_of_code_are_indented_and_no_word_is_cut() -> None:
    line = "  problem.py:9, in Block.forward: x = x + self.attn(self.ln_1(x)) * self.factor"
    assert wrapped(line, 60).splitlines() == [
        "  problem.py:9, in Block.forward: x = x +",
        "    self.attn(self.ln_1(x)) * self.factor",
    ]
    assert wrapped("Look at x - y again, and then at the rest.", 20) == (
        "Look at x - y again,\nand then at the\nrest."
    )
