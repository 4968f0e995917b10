"""Find the student's current problem and tasks by testing the files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grader.course import Course, Problem, in_order
from grader.result import ProblemResult, Status
from grader.student import hints
from grader.student.seen import SeenMistakes

if TYPE_CHECKING:
    from grader.run.session import Session


def open_tasks(course: Course, here: Path) -> tuple[Problem, list[str]] | None:
    """Return the first problem that does not pass, and its open tasks; None if all pass."""
    for problem in around(course, here):
        session = newly_tested(course, problem)
        if session and not (result := session.results[problem.id]).passed:
            return problem, tasks_at_hand(problem, result)
    return None


def newly_tested(course: Course, problem: Problem, *, diagnose: bool = False) -> Session | None:
    """Test a problem and save whether it passes. Return None if it passed and has not changed.

    Args:
        course: the student's copy.
        problem: the problem to test.
        diagnose: whether to name mistakes.
    """
    memory = SeenMistakes(course.root)
    if memory.passes(problem):
        return None
    # Imported here because they load torch, which is not needed if everything has passed.
    from grader.run.announce import loaded
    from grader.run.local_files import LocalFiles
    from grader.run.session import Session
    from grader.run.suite import Suite

    loaded()
    session = Session(LocalFiles(), diagnose=diagnose)
    Suite([problem], course.root).run(session)
    memory.keep(problem, session.results[problem.id])
    return session


def around(course: Course, here: Path) -> list[Problem]:
    """Return the problem with the current folder; outside of problems return all, in order."""
    inside = [problem for problem in course.problems() if here.is_relative_to(problem.folder)]
    return inside or in_order(course.problems())


def tasks_at_hand(problem: Problem, result: ProblemResult) -> list[str]:
    """Return the task that the first open test names, or all unfinished tasks.

    A task is finished if tests name it and all of these pass.
    """
    first = next((test for test in result.tests if test.status is not Status.PASSED), None)
    named = [] if first is None else hints.named(problem, f"{first.title} {first.message}")
    if len(named) == 1:
        return named
    passes: dict[str, bool] = {}
    for test in result.tests:
        for task in hints.named(problem, test.title):
            passes[task] = passes.get(task, True) and test.status is Status.PASSED
    return [task for task in hints.tasks(problem) if not passes.get(task, False)]
