"""Show a student's progress through the course in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from grader.course import Problem, cd_to, in_solving_order
from grader.result import ProblemResult, shown, total
from grader.student.report import next_step, whole_points
from grader.text import printable

_WIDTH = 20


def show_progress(
    console: Console,
    results: Mapping[Problem, ProblemResult],
    not_begun: Sequence[Problem] = (),
) -> Problem | None:
    """Print a table of the problems, the points of each part of the course, and the next step.

    Return the first problem that does not pass, or None if all problems pass.

    Args:
        console: the console to print to.
        results: the result of each problem, in the order of the course.
        not_begun: the optional problems that the student has not begun.
    """
    console.print(progress_table(results.values(), console.encoding))
    console.print("\n" + "\n".join(_totals(results.values())))
    ordered = in_solving_order(results)
    todo = next((problem for problem in ordered if not results[problem].passed), None)
    skips = todo is not None and ordered[0].part.optional and not todo.part.optional
    if todo is None or not_begun and skips:
        here = "Everything here" if todo is None else "What you have begun"
        console.print(f"{here} passes. Well done!")
        if not_begun:
            where = f"problems/{not_begun[0].id}/README.md"
            text = f"{invitation(results, not_begun[0])}: {where}"
            console.print(text, markup=False, soft_wrap=True)
        return todo
    text = f"{todo.id}: {next_step(results[todo])}"
    console.print(printable(text, console.encoding), markup=False)
    console.print(f"For the details: {cd_to(todo.folder)}uv run pytest", markup=False)
    console.print(f"For a hint: uv run grader hint {todo.id[:2]}", markup=False)
    return todo


def _totals(results: Iterable[ProblemResult]) -> Iterator[str]:
    """Yield a sentence with the points of all required problems, and one for each optional part."""
    by_part: dict[str, list[ProblemResult]] = {}
    for result in results:
        by_part.setdefault(result.part if result.optional else "", []).append(result)
    for part, results_of_part in by_part.items():
        points, most = (
            total(map(whole_points, results_of_part)),
            total(r.max for r in results_of_part),
        )
        name = f"Part {part}: " if part and "" in by_part else ""
        hidden = any(test.hidden for result in results_of_part for test in result.tests)
        tests = "" if hidden else " in the visible tests"
        yield f"{name}{shown(points)} of {shown(most)} points{tests}."


def invitation(begun: Iterable[Problem], next_one: Problem) -> str:
    """Return the beginning of a sentence that suggests an optional problem.

    Args:
        begun: the problems that the student has begun.
        next_one: the suggested problem.
    """
    part = next_one.part
    if any(problem.part == part for problem in begun):
        return f"If you like, part {part.id} goes on"
    return f"If you like, go on to part {part.id}, {part.title}"


def progress_table(results: Iterable[ProblemResult], encoding: str = "utf-8") -> Table:
    """Return a table with a row for each problem: its points, a bar and its state.

    Args:
        results: the result of each problem, in the order of the course.
        encoding: the terminal's encoding; unsupported symbols are replaced.
    """
    table = Table(box=None, pad_edge=False)
    table.add_column("problem", no_wrap=True)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    for result in results:
        points = f"{shown(whole_points(result))} of {shown(result.max)}" if result.tests else ""
        table.add_row(result.id, points, printable(_bar(result), encoding), _state(result))
    return table


def _bar(result: ProblemResult) -> str:
    full = int(_WIDTH * whole_points(result) / result.max) if result.max else 0
    return f"[green]{'█' * full}[/][dim]{'░' * (_WIDTH - full)}[/]"


def _state(result: ProblemResult) -> str:
    if not result.tests:
        return "[dim]not yet run[/]"
    if result.passed:
        return "[green]done[/]"
    return "[dim]not started[/]" if result.untouched else "[yellow]in progress[/]"
