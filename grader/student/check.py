"""Shows how far the course's own problems have come, and what to do next."""

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

    Beside problems that count, what was not begun of optional ones is not asked for.

    Args:
        course: whose files to test.
        problems: which of its problems.
        console: where to print.
        hidden: whether to run the hidden halves too, where they are at hand.
        seed: what the tests' inputs are drawn from.
    """
    loaded()
    # The table names no mistake, so none is looked for.
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
