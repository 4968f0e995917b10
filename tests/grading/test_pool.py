"""The pool tries again, alone, what may not have been the code's own fault."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from grader.course import Course
from grader.grading import pool
from grader.grading.settings import Settings
from grader.intake.submissions import Submission, find_submissions
from grader.result import ProblemResult, Status, SubmissionResult, TestResult


class FakeProcess:
    exitcode = 0

    def is_alive(self) -> bool:
        return True

    def join(self, timeout: float) -> None: ...

    def kill(self) -> None: ...


class FakeConnection:
    """Answers each task by the script; real ones are pipes."""

    def __init__(self, answer) -> None:  # type: ignore[no-untyped-def]
        self.answer, self.tasks = answer, []

    def send(self, task: object) -> None:
        self.tasks.append(task)

    def recv(self) -> SubmissionResult:
        return self.answer(self.tasks.pop(0))

    def close(self) -> None: ...


LOST = "the grader's process ended with -9"


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
def test_what_may_be_nobodys_fault_is_tried_again_alone(
    small_course: Course,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    jobs: int,
    first: str,
    alone: str,
    points: float,
    repeated: bool,
) -> None:
    asked: list[tuple[str, list[str]]] = []

    def answer(submission: Submission) -> SubmissionResult | str:
        name = submission.name
        again = name in {asked_name for asked_name, _ in asked}
        asked.append((name, list(submission.files)))
        status = (alone if again else first) if name == "bob" else Status.PASSED
        if status == LOST:
            return LOST
        test = TestResult("test_doubles", "it doubles", False, 4, Status(status))
        return SubmissionResult(
            name, 0, "sandbox", "", [ProblemResult("01-doubling", tests=[test])]
        )

    def start(course: Course, settings: Settings, needed, start, core: int | None):  # type: ignore[no-untyped-def]
        return pool._Job(FakeProcess(), FakeConnection(answer), core)  # type: ignore[arg-type]

    monkeypatch.setattr(pool, "_start", start)
    monkeypatch.setattr(pool, "processes", lambda isolation: nullcontext())
    monkeypatch.setattr(pool, "wait", lambda connections: connections)
    for name in ("ada", "bob", "eve"):
        (tmp_path / "class" / name / "01-doubling").mkdir(parents=True)
    results: dict[str, SubmissionResult] = {}
    submissions = find_submissions([tmp_path / "class"], small_course)
    pool.grade_all(
        submissions, small_course, Settings(), jobs, lambda r: results.update({r.submission: r})
    )
    assert set(results) == {"ada", "bob", "eve"}
    assert results["bob"].points == points
    assert results["bob"].problems[0].repeated is repeated
    tried_again = jobs > 1 or first != Status.TIMEOUT
    assert asked[-1] == ("bob" if tried_again else "eve", ["01-doubling"])
    assert len(asked) == 4 + tried_again
    failed = alone in (Status.INTERNAL, LOST)
    assert (results["bob"].status == Status.INTERNAL) is failed
    assert any("the next run grades it again" in note for note in results["bob"].notes) is failed
