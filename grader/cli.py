"""The students' commands and their options, and the error messages of all commands.

This is the entry point of the students' copy. `cli_instructor.py` adds the commands of instructors
and authors. A command imports its modules only when it runs, so that all commands start quickly.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from grader.course import Course, Problem, own_course, use_course
from grader.errors import (
    CourseError,
    InternalError,
    InUse,
    SubmissionError,
    UsageError,
)
from grader.files import is_avoidable, os_error_sentence
from grader.text import plain, printable

app = typer.Typer(
    help="Test the exercises of a course.",
    no_args_is_help=False,
    rich_markup_mode="rich",  # the help shows rarely used options in a separate panel
    pretty_exceptions_enable=False,
)
console = Console(highlight=False)

UNSOLVED = 1

BAD_USAGE = 2
GRADERS_FAULT = 3
INTERRUPTED = 130
KILLED = 128  # the signal's number is added

# Arguments that several commands share
SomeProblems = Annotated[
    list[str] | None, typer.Argument(help="problems, for example 03; default: all")
]
ThisProblem = Annotated[
    str | None,
    typer.Argument(help="problem, for example 03; default: the problem of the current folder"),
]


def this_course() -> Course:
    """Return the course that the commands work on."""
    return own_course()


def _version(wanted: bool) -> None:
    if wanted:
        with reported_errors():
            scripts = entry_points(group="console_scripts", name="grader")
            versions = [script.dist.version for script in scripts if script.dist]
            console.print(" ".join(["grader", *versions[:1]]))
        raise typer.Exit


@app.callback(invoke_without_command=True)
def default(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
    course: Annotated[
        Path | None,
        typer.Option(
            help="use the course in this folder; default: the course that contains the grader or "
            "the current folder"
        ),
    ] = None,
) -> None:
    """Run `grader check` if no command was given."""
    with reported_errors():
        if course is not None:
            use_course(course)
    if context.invoked_subcommand is None:
        check([])


# For students


@app.command()
def check(
    problems: SomeProblems = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="run the hidden tests, too")] = False,
    seed: Annotated[int, typer.Option(help="draw the inputs of the tests from this seed")] = 0,
) -> None:
    """Test your work in problems/, and show your progress and the next step."""
    with reported_errors():
        from grader.student.testing import check as run_check

        course = this_course()
        done = run_check(course, course.select(problems or []), console, hidden=hidden, seed=seed)
    raise typer.Exit(0 if done else UNSOLVED)


@app.command()
def watch(
    problem: Annotated[
        str | None, typer.Argument(help="problem, for example 03; default: the first that fails")
    ] = None,
) -> None:
    """Test a problem again each time you save it."""
    with reported_errors():
        from grader.student.watch import Watch

        course = this_course()
        start = course.select([problem])[0] if problem else None
        Watch(course, console, start).run()


@app.command()
def hint(
    problem: ThisProblem = None,
    level: Annotated[int, typer.Argument(min=1, max=3, help="how much to reveal")] = 1,
    task: Annotated[str, typer.Option(help="show only the hints of this function or class")] = "",
    name: Annotated[
        bool, typer.Option("--name", help="name the mistake that your wrong answers match")
    ] = False,
) -> None:
    """Show hints for a problem (1: a nudge, 2: the idea, 3: a plan), or name your mistake."""
    with reported_errors():
        from grader.student import hints

        course = this_course()
        if name:
            from grader.student.testing import name_mistake

            print_text(name_mistake(course, _these_problems(course, problem)))
            return
        if problem is None:
            from grader.student.testing import open_tasks

            open_problem = open_tasks(course, Path.cwd())
            if open_problem is None:
                (solved, *_) = _these_problems(course, None)
                print_text("All tests here pass, so no task is open.")
                print_text(f"To see hints anyway: uv run grader hint {solved.id[:2]}")
                return
            chosen, tasks = open_problem
            task = tasks[0] if len(tasks) == 1 else ""
        else:
            chosen = course.select([problem])[0]
            tasks = hints.matching(chosen, task)
        print_text(hints.show(chosen, level, tasks))
    if level < len(hints.LEVELS):
        only = f" --task {shlex.quote(task)}" if task else ""
        print_text(f"\nFor more: uv run grader hint {chosen.id[:2]} {level + 1}{only}")


@app.command()
def compare(
    problem: ThisProblem = None,
) -> None:
    """Show other correct files next to yours, once all visible tests of a problem pass."""
    with reported_errors():
        course = _with_solutions()
        from grader.run.announce import loaded
        from grader.student.solved.right_files import compare as show

        loaded()
        opened = show(course, _this_problem(course, problem, "compare"), console)
    raise typer.Exit(0 if opened else UNSOLVED)


@app.command()
def reset(
    problem: ThisProblem = None,
    yes: Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")] = False,
) -> None:
    """Restore a problem's stub, and keep a copy of your file next to it."""
    with reported_errors():
        from grader.student.reset import require_stub, restore_stub

        course = this_course()
        chosen = _this_problem(course, problem, "reset")
        require_stub(course, chosen)
        if chosen.stub.is_file() and not chosen.is_begun:
            print_text(f"The problem.py of {chosen.id} is the stub already.")
            return
        if not yes:
            typer.confirm(f"Restore the stub of {chosen.id}? Your file is kept.", abort=True)
        kept = restore_stub(chosen)
    print_text(f"The stub of {chosen.id} is restored.")
    if kept is not None:
        print_text(f"Your file is {os.path.relpath(kept)}.")


@app.command("break")
def break_(
    problem: ThisProblem = None,
    tests: Annotated[
        Path | None,
        typer.Option(help="run this file of tests; default: test_mine.py"),
    ] = None,
) -> None:
    """Run your tests on correct files and on known mistakes, and show which mistakes they catch."""
    with reported_errors():
        course = _with_solutions()
        from grader.run.announce import loaded
        from grader.student.solved.break_tests import break_problem

        loaded()
        report = break_problem(course, _this_problem(course, problem, "break"), console, tests)
    for text in report.lines():
        print_text(text)
    raise typer.Exit(UNSOLVED if report.refused else 0)


def _with_solutions() -> Course:
    """Return the course if it contains solutions, which `compare` and `break` need.

    Raises:
        UsageError: the course contains no solutions.
    """
    course = this_course()
    if not course.has_solutions:
        raise UsageError("This copy of the course has no solutions/, which this command needs.")
    return course


def _these_problems(course: Course, name: str | None) -> list[Problem]:
    """Return a list with the named problem.

    Without a name, return the problem that contains the current folder. Outside of the problems'
    folders, return all problems.
    """
    from grader.student.testing import problems_at

    return course.select([name]) if name else problems_at(course, Path.cwd())


def _this_problem(course: Course, name: str | None, command: str) -> Problem:
    here = _these_problems(course, name)
    if len(here) != 1:
        raise UsageError(f"Name a problem, for example: uv run grader {command} 01")
    return here[0]


# What went wrong


class _Interrupted(BaseException):
    """A signal ended this process, or its terminal was closed."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.signal = number


@contextmanager
def _signals_raised() -> Iterator[None]:
    """Raise `_Interrupted` when SIGTERM or SIGHUP arrives.

    A signal that is ignored, for example because of nohup, stays ignored.
    """
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [getattr(signal, name) for name in names]
    is_main = threading.current_thread() is threading.main_thread()
    caught = [n for n in numbers if is_main and signal.getsignal(n) is signal.SIG_DFL]

    def end(number: int, _: object) -> None:
        for each in caught:
            signal.signal(each, signal.SIG_IGN)  # do not interrupt the cleanup
        raise _Interrupted(number)

    for number in caught:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in caught:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def reported_errors() -> Iterator[list[str]]:
    """Print an error in the `with` block as one line, and exit with the status for its kind.

    Yields:
        An empty list. The command appends sentences about finished work and how to continue. They
        are printed if the command is interrupted or the system reports an error.
    """
    on_early_end: list[str] = []
    try:
        with _signals_raised():
            yield on_early_end
    except _Interrupted as ended:
        stop(" ".join(["Stopped.", *on_early_end]), KILLED + ended.signal)
    except KeyboardInterrupt:
        stop(" ".join(["Stopped.", *on_early_end]), INTERRUPTED)
    except (SubmissionError, InUse, UsageError) as error:
        stop(plain(str(error)), BAD_USAGE)
    except CourseError as error:
        stop(f"The course has an error: {error}", GRADERS_FAULT)
    except InternalError as error:
        stop(f"The grader failed; no mark was given: {error}", GRADERS_FAULT)
    except OSError as error:
        reason = " ".join([plain(os_error_sentence(error)), *on_early_end])
        stop(reason, BAD_USAGE if is_avoidable(error) else GRADERS_FAULT)


def stop(message: str, status: int) -> None:
    """Print a message to stderr, and exit with this status."""
    with suppress(OSError):  # stderr may be a file on a full disk
        Console(stderr=True, highlight=False).print(message, markup=False, soft_wrap=True)
    sys.exit(status)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines. Control characters, which file names may contain, are replaced."""
    for line in lines:
        console.print(plain(line), markup=False)


def print_text(text: str) -> None:
    """Print text. Characters that the terminal cannot show are replaced."""
    console.print(printable(text, console.encoding), markup=False)
