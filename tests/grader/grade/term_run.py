"""One weekly run of a term in a process that can be killed.

The first line of a student's file states its points, 10 at most. Everything
else works as in `grader grade`: it reads the download, keeps results and writes reports.

    python -m tests.grader.grade.term_run DOWNLOAD OUT PROBLEM [--die-at N]
"""

from __future__ import annotations

import argparse
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from grader.course import Course, own_course
from grader.grade import class_run
from grader.grade.provenance import common_provenance, provenance
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile, Submission
from grader.intake.identity import only_these
from grader.intake.submissions import take_in
from grader.result import Policy, ProblemResult, Status, SubmissionResult, TestResult


def run_week(download: Path, out: Path, problem: str, only: Sequence[str] = ()) -> list[str]:
    """Grade the submissions of a problem; return the lines that the instructor reads."""
    course = own_course()
    (chosen,) = course.select([problem])
    intake = take_in(download, course, chosen)
    submissions = only_these(intake.submissions, only) if only else intake.submissions
    run = class_run.grade_class(
        submissions,
        course,
        Settings(),
        out,
        jobs=1,
        policy=Policy.TITLES,
        is_whole=intake.is_whole and not only,
    )
    return [*intake.unmatched, *run.messages, *run.news.about_book, *map(str, run.news.changes)]


def made_up(
    submissions: Sequence[Submission],
    course: Course,
    settings: Settings,
    jobs: int,
    on_result: Callable[[SubmissionResult], None],
) -> None:
    common = common_provenance(course, settings)
    for submission in submissions:
        result = SubmissionResult(submission.name, 0, settings.isolation, "")
        for id, file in submission.files.items():
            found = ProblemResult(id, file.sha256, tests_of(file))
            found.provenance = provenance(file, common[id])
            result.problems.append(found)
        on_result(result)


def tests_of(file: StudentFile) -> list[TestResult]:
    points = float((file.source or b"# 0").split()[1])
    return [
        TestResult("test_right", "What is right", False, points, Status.PASSED),
        TestResult("test_wrong", "What is wrong", True, 10 - points, Status.FAILED, "wrong"),
    ]


def die_at(renaming: int) -> None:
    """Kill this process just before it writes its nth file."""
    rename, left = os.replace, renaming

    def replace(*args: Any, **options: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(*args, **options)

    os.replace = replace  # type: ignore[assignment]


def main() -> None:
    class_run.grade_all = made_up  # type: ignore[assignment]
    parser = argparse.ArgumentParser()
    parser.add_argument("download", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("problem")
    parser.add_argument("--die-at", type=int, default=0)
    chosen = parser.parse_args()
    if chosen.die_at:
        die_at(chosen.die_at)
    print("\n".join(run_week(chosen.download, chosen.out, chosen.problem)))


if __name__ == "__main__":
    main()
