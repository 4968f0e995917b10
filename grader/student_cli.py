"""The commands that students have; `cli` adds the instructor's, which their copy is without.

What needs torch is imported only where it is used: a hint should not wait for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console

from grader import hints, reset
from grader.course import CourseError, UsageError, own_course
from grader.reports.student import printable

app = typer.Typer(
    help="Tests and grades the attention course.",
    no_args_is_help=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
console = Console(highlight=False)

UNSOLVED = 1
BAD_USAGE = 2
OWN_FAULT = 3


@app.callback(invoke_without_command=True)
def default(context: typer.Context) -> None:
    """Without a command: show the progress, as `grader check` does."""
    if context.invoked_subcommand is None:
        check([])


@app.command()
def check(
    problems: Annotated[list[str] | None, typer.Argument(help="such as 03; default: all")] = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="run the hidden halves too")] = False,
    seed: Annotated[int, typer.Option(help="what the tests' inputs are drawn from")] = 0,
) -> None:
    """Show how far your own work in problems/ has come, and what to do next."""
    from grader.check import check as run_check

    with _faults():
        course = own_course()
        selected = course.select(problems or [])
        done = run_check(course, selected, console, hidden=hidden, seed=seed)
    raise typer.Exit(0 if done else UNSOLVED)


@app.command()
def watch(
    problem: Annotated[
        str | None, typer.Argument(help="such as 03; default: the first open")
    ] = None,
) -> None:
    """Test a problem again each time you save it."""
    from grader.watch import Watch

    with _faults():
        course = own_course()
        start = course.select([problem])[0] if problem else None
        Watch(course, console, start).run()


@app.command()
def hint(
    problem: Annotated[str, typer.Argument(help="such as 03")],
    level: Annotated[
        int, typer.Argument(min=1, max=len(hints.LEVELS), help="how much to tell")
    ] = 1,
    task: Annotated[str, typer.Option(help="only this function or class")] = "",
) -> None:
    """Show a problem's hints: 1 is a nudge, 2 the idea, 3 a plan."""
    with _faults():
        chosen = own_course().select([problem])[0]
        _print(hints.show(chosen, level, task))
    if level < len(hints.LEVELS):
        _print(f"\nFor more: uv run grader hint {chosen.id[:2]} {level + 1}")


@app.command("reset")
def put_back(
    problem: Annotated[str, typer.Argument(help="such as 03")],
    yes: Annotated[bool, typer.Option("--yes", help="do it without asking")] = False,
) -> None:
    """Put a problem's stub back; what you wrote is kept beside it."""
    with _faults():
        chosen = own_course().select([problem])[0]
        if reset.is_stub(chosen):
            _print(f"The problem.py of {chosen.id} is the stub already.")
            return
        if not yes:
            typer.confirm(f"Put the stub of {chosen.id} back? Your file is kept.", abort=True)
        kept = reset.put_stub_back(chosen)
    _print(f"The stub of {chosen.id} is back.")
    if kept is not None:
        _print(f"What you had is in {kept}.")


def _print(text: str) -> None:
    console.print(printable(text, console.encoding), markup=False)


@contextmanager
def _faults() -> Iterator[None]:
    """Turn what went wrong into one line and an exit status."""
    try:
        yield
    except UsageError as error:
        stop(str(error), BAD_USAGE)
    except CourseError as error:
        stop(f"The course is not as it should be: {error}", OWN_FAULT)
    except OSError as error:
        stop(f"A file could not be read or written: {error}", OWN_FAULT)


def stop(message: str, status: int) -> None:
    """Say why nothing more happens, and end."""
    Console(stderr=True, highlight=False).print(message, markup=False)
    sys.exit(status)
