"""A submission is graded again, alone, if its failure may have another cause than its code."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from grader.course import Course
from grader.errors import TIME_USED_UP
from grader.grade import pool
from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.intake.submissions import find_submissions
from grader.result import ProblemResult, Status, SubmissionResult
from tests.results import doubles, result_of

Answer = Callable[[Submission, float | None], SubmissionResult | str]


class FakeProcess:
    exitcode = 0

    def is_alive(self) -> bool:
        return True

    def join(self, timeout: float) -> None: ...

    def kill(self) -> None: ...


class FakeConnection:
    """A connection that replies to each task with the result of the function `answer`."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.tasks = answer, []  # type: ignore[var-annotated]

    def send(self, task: object) -> None:
        self.tasks.append(task)

    def recv(self) -> SubmissionResult | str:
        return self.answer(*self.tasks.pop(0))

    def close(self) -> None: ...


@pytest.fixture
def grade(
    small_course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, SubmissionResult]]:
    """Return a function that grades submissions. Its argument `answer` returns the results."""

    def grade_them(names: str, answer: Answer, jobs: int) -> dict[str, SubmissionResult]:
        def start(*given: Any) -> pool._Grading:
            return pool._Grading(FakeProcess(), FakeConnection(answer), given[-1])  # type: ignore[arg-type]

        monkeypatch.setattr(pool, "_start", start)
        monkeypatch.setattr(pool, "processes", lambda isolation: nullcontext())
        monkeypatch.setattr(pool, "wait", lambda connections: connections)
        for name in names.split():
            (tmp_path / "class" / name / "01-doubling").mkdir(parents=True)
        submissions, results = find_submissions(tmp_path / "class", small_course), {}
        add = lambda result: results.update({result.submission: result})  # noqa: E731
        pool.grade_all(submissions, small_course, Settings(), jobs, add)
        return results

    return grade_them


LOST = "the grader's process ended with exit code -9"


@pytest.mark.parametrize(
    ("jobs", "first", "alone", "points", "repeated"),
    [
        (2, Status.TIMEOUT, Status.PASSED, 4, True),
        (2, Status.TIMEOUT, Status.TIMEOUT, 0, True),
        (1, Status.TIMEOUT, Status.PASSED, 0, False),
        (2, Status.INTERNAL, Status.PASSED, 4, True),
        (1, Status.INTERNAL, Status.PASSED, 4, True),
        (1, Status.INTERNAL, Status.INTERNAL, 0, True),
        (1, LOST, Status.PASSED, 4, True),
        (1, LOST, LOST, 0, False),
    ],
)
def test_unexplained_failures_are_retried_alone(
    grade: Callable[..., dict[str, SubmissionResult]],
    jobs: int,
    first: str,
    alone: str,
    points: float,
    repeated: bool,
) -> None:
    asked: list[tuple[str, list[str]]] = []

    def answer(submission: Submission, seconds: float | None) -> SubmissionResult | str:
        name = submission.name
        again = name in {asked_name for asked_name, _ in asked}
        asked.append((name, list(submission.files)))
        status = (alone if again else first) if name == "bob" else Status.PASSED
        if status == LOST:
            return LOST
        return result_of(name, ProblemResult("01-doubling", tests=[doubles(Status(status))]))

    results = grade("ada bob eve", answer, jobs)
    assert set(results) == {"ada", "bob", "eve"}
    assert results["bob"].points == points
    assert results["bob"].problems[0].repeated is repeated
    tried_again = jobs > 1 or first != Status.TIMEOUT
    assert asked[-1] == ("bob" if tried_again else "eve", ["01-doubling"])
    assert len(asked) == 4 + tried_again
    failed = alone in (Status.INTERNAL, LOST)
    assert (results["bob"].status == Status.INTERNAL) is failed
    assert (
        any("The next run grades this problem again" in note for note in results["bob"].notes)
        is failed
    )


def test_slow_submissions_are_graded_last(
    grade: Callable[..., dict[str, SubmissionResult]],
) -> None:
    """A submission that exceeds a short time limit is graded last, with the full limit."""
    asked: list[tuple[str, bool]] = []

    def answer(submission: Submission, seconds: float | None) -> SubmissionResult:
        is_short = seconds is not None
        asked.append((submission.name, is_short))
        is_slow = submission.name == "ada" and is_short
        status = Status.TIMEOUT if is_slow else Status.PASSED
        text = f"problem.py can't be imported. {TIME_USED_UP}" if is_slow else ""
        problem = ProblemResult("01-doubling", tests=[doubles(status, text)])
        return result_of(submission.name, problem)

    found = grade("ada bob", answer, 1)
    assert [*found] == ["bob", "ada"]
    assert all(each.points == 4 for each in found.values())
    assert [short for name, short in asked if name == "ada"] == [True, False]
    assert dict(asked)["bob"] is True
    assert [short for name, short in asked if name not in ("ada", "bob")] == [False]
