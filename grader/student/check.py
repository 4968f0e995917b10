"""Show the progress in the course's problems and the next step."""

from __future__ import annotations

from rich.console import Console

from grader.course import Course, Problem, on_the_way
from grader.run.announce import loaded
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite
from grader.student.progress import show_progress
from grader.student.seen import SeenMistakes


def check(
    course: Course,
    problems: list[Problem],
    console: Console,
    *,
    hidden: bool = False,
    seed: int = 0,
) -> bool:
    """Test problems and print the progress; return whether everything passes.

    Optional problems that the student has not begun are skipped if required ones are tested.

    Args:
        course: the course with the files to test.
        problems: the problems to test.
        console: where to print.
        hidden: whether to run the hidden halves too, if they are available.
        seed: the seed of the tests' inputs.
    """
    loaded()
    # The table shows no mistakes, so diagnosis is off.
    session = Session(LocalFiles(), hidden=hidden, seed=seed, diagnose=False)
    begun = on_the_way(problems)
    Suite(begun, course.root).run(session)
    results = {p: session.results.get(p.id, p.result()) for p in begun}
    for problem, result in results.items():
        SeenMistakes(course.root).keep(problem, result)
    todo = show_progress(console, results, [p for p in problems if p not in begun])
    if hidden and all(p.first_hidden_line() is None for p in problems):
        console.print("The hidden tests are not in this copy of the course.")
    if todo is None and not hidden:
        console.print("Hidden tests check more when your work is graded.")
    return todo is None
