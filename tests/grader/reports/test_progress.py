"""A run without a terminal prints its progress."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import pytest
from rich.console import Console

from grader.reports.progress_bar import EVERY_SECONDS, ProgressLines, progress_bar


class Run:
    """A run with a clock that the test sets."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.seconds = 0.0
        self.shown = ProgressLines(
            self.lines.append,
            lambda: self.seconds,
            lambda: datetime(2026, 1, 1, 12) + timedelta(seconds=self.seconds),
        )
        self.task = self.shown.add_task("grading", total=None)

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds
        self.shown.advance(self.task)


def test_lines_estimate_the_end_of_the_run() -> None:
    run = Run()
    run.shown.update(run.task, total=300)
    for _ in range(300):
        run.pass_by(2)
    assert run.lines[0] == "grading: 15 of 300 done, about 10 min left, until about 12:10"
    assert run.lines[-1] == "grading: 300 of 300 done"
    assert len(run.lines) == 600 / EVERY_SECONDS


@pytest.mark.parametrize(
    ("each", "total", "output"),
    [
        (EVERY_SECONDS, 2, "less than a minute left, until about 12:01"),
        (3600.0, 4, "about 3 h left, until about 16:00"),
    ],
)
def test_durations_are_rounded(each: float, total: int, output: str) -> None:
    run = Run()
    run.shown.update(run.task, total=total)
    run.pass_by(each)
    assert run.lines[-1] == f"grading: 1 of {total} done, {output}"


def test_a_file_gets_lines_and_a_terminal_a_bar() -> None:
    assert isinstance(progress_bar(Console(file=io.StringIO())), ProgressLines)
    assert not isinstance(progress_bar(Console(force_terminal=True)), ProgressLines)
