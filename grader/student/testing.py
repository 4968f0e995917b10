"""Test a student's files, and report the progress, the unfinished tasks or a mistake."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from grader.course import Course, Problem, in_solving_order, problems_to_solve
from grader.result import ProblemResult, Status
from grader.student import hints
from grader.student.progress import show_progress
from grader.student.report import WIDTH, failure_report, next_step
from grader.student.seen import SeenMistakes, named

if TYPE_CHECKING:  # the import loads torch, which is not needed if everything passed before
    from grader.run.session import Session

_NO_NAME = "The wrong answers match no known mistake.\n\n"


def check(
    course: Course,
    problems: list[Problem],
    console: Console,
    *,
    hidden: bool = False,
    seed: int = 0,
) -> bool:
    """Test problems, print the progress, and return whether all tests pass.

    Optional problems that the student has not begun are skipped, unless all problems are optional.

    Args:
        course: the course with the files to test.
        problems: the problems to test.
        console: the console to print to.
        hidden: whether to run hidden tests too, if they are available.
        seed: the seed of the tests' inputs.
    """
    begun = problems_to_solve(problems)
    # The table shows no mistakes, so diagnosis is off.
    session = _run(course, begun, hidden=hidden, seed=seed, diagnose=False)
    results = {p: session.results.get(p.id, p.result()) for p in begun}
    for problem, result in results.items():
        SeenMistakes(course.root).save_passed(problem, result)
    todo = show_progress(console, results, [p for p in problems if p not in begun])
    if hidden and all(p.first_hidden_line() is None for p in problems):
        console.print("The hidden tests are not in this copy of the course.")
    if todo is None and not hidden:
        console.print("Hidden tests check more when your work is graded.")
    return todo is None


def name_mistake(course: Course, problems: Sequence[Problem]) -> str:
    """Test problems, and return a text about the first failed test and its mistake.

    Args:
        course: the student's copy of the course.
        problems: the problems to test.
    """
    todo = ""
    for problem in problems_to_solve(problems):
        if not (session := run_if_changed(course, problem, diagnose=True)):
            continue
        result = session.results[problem.id]
        reading = named(result)
        SeenMistakes(course.root).mark_seen(problem.id, reading.seen)
        width = min(WIDTH, shutil.get_terminal_size().columns)
        if text := failure_report(
            result, session.printed[problem.id], reading=reading, width=width
        ):
            return f"{problem.id}\n\n{'' if reading.sentences else _NO_NAME}{text}"
        todo = todo or ("" if result.passed else f"{problem.id}: {next_step(result)}")
    return f"There is no wrong answer here. {todo}".strip()


def open_tasks(course: Course, here: Path) -> tuple[Problem, list[str]] | None:
    """Return the first problem that does not pass, and the tasks to work on.

    Return None if all problems pass.

    Args:
        course: the student's copy of the course.
        here: the current folder. In a problem's folder, only this problem is tested.
    """
    for problem in problems_at(course, here):
        session = run_if_changed(course, problem)
        if session and not (result := session.results[problem.id]).passed:
            return problem, tasks_to_do(problem, result)
    return None


def run_if_changed(course: Course, problem: Problem, *, diagnose: bool = False) -> Session | None:
    """Test a problem, and save whether it passes.

    If the problem passed before and has not changed, return None without testing.

    Args:
        course: the student's copy of the course.
        problem: the problem to test.
        diagnose: whether to name mistakes.
    """
    memory = SeenMistakes(course.root)
    if memory.passes(problem):
        return None
    session = _run(course, [problem], diagnose=diagnose)
    memory.save_passed(problem, session.results[problem.id])
    return session


def _run(
    course: Course,
    problems: Sequence[Problem],
    *,
    hidden: bool = False,
    seed: int = 0,
    diagnose: bool,
) -> Session:
    """Run the tests of problems on the files in the problems' folders."""
    from grader.run.announce import loaded
    from grader.run.local_files import LocalFiles
    from grader.run.session import Session
    from grader.run.suite import Suite

    loaded()
    session = Session(LocalFiles(), hidden=hidden, seed=seed, diagnose=diagnose)
    Suite([*problems], course.root).run(session)
    return session


def problems_at(course: Course, here: Path) -> list[Problem]:
    """Return a list with the problem that contains the folder `here`.

    If `here` is not in a problem's folder, return all problems in the order of solving.
    """
    inside = [problem for problem in course.problems() if here.is_relative_to(problem.folder)]
    return inside or in_solving_order(course.problems())


def tasks_to_do(problem: Problem, result: ProblemResult) -> list[str]:
    """Return the task that the first failed test is about.

    If the test's title and message contain no task or several, return all unfinished tasks. A task
    is finished if at least one test has the task in its title and all of these tests pass.
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
