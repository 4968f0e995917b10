"""The command line: parses options, calls the rooms below, and turns faults into exit statuses.

The students' commands are in `student_cli`; here are the instructor's.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from grader.audit import candidates, parity_findings, run_audit
from grader.autograder import build as build_autograder
from grader.batch import GraderError, default_jobs
from grader.class_run import grade_class
from grader.course import CourseError, UsageError, own_course
from grader.doctor import examine
from grader.earlier import InUse
from grader.grade import Settings
from grader.release import release as write_release
from grader.replay import replay as replay_test
from grader.replay import report as replay_report
from grader.reports.audit import legend, matrix, write_tables
from grader.reports.feedback import Policy
from grader.reports.terminal import about_run, class_table, examination_table, remarks
from grader.reports.text import plain
from grader.student_cli import BAD_USAGE, OWN_FAULT, app, console, stop
from grader.submissions import SubmissionError, counted, take_in

INTERRUPTED = 130


class Isolation(StrEnum):
    """How student code is kept apart from the tests."""

    AUTO = "auto"
    SANDBOX = "sandbox"
    PROCESS = "process"


@app.command()
def grade(
    paths: Annotated[list[Path], typer.Argument(help="submissions, or folders of submissions")],
    out: Annotated[Path, typer.Option(help="folder for results and reports")],
    jobs: Annotated[int | None, typer.Option(min=1, help="at a time; default: cores")] = None,
    seed: Annotated[int, typer.Option(help="what the tests' inputs are drawn from")] = 0,
    timeout: Annotated[float, typer.Option(min=0.1, help="seconds for one call")] = 10.0,
    memory: Annotated[int, typer.Option(min=64, help="MB for one submission")] = 1024,
    isolation: Annotated[Isolation, typer.Option(help="how to keep code apart")] = Isolation.AUTO,
    feedback: Annotated[
        Policy, typer.Option(help="what students read of hidden tests")
    ] = Policy.TITLES,
    fresh: Annotated[bool, typer.Option("--fresh", help="ignore earlier results")] = False,
    problem: Annotated[
        str | None,
        typer.Option(help="the one that was handed in, such as 03; a bare problem.py is for it"),
    ] = None,
    scheduler: Annotated[
        str,
        typer.Option(help="address of a dask scheduler whose workers grade; --jobs is not used"),
    ] = "",
) -> None:
    """Grade submissions and write results, gradebook and feedback to a folder."""
    _require_outside(out, paths)
    course = own_course()
    settings = Settings(seed, timeout, memory, isolation.value)
    with _faults(), _progress_bar() as progress:
        only = None if problem is None else course.select([problem])[0]
        intake = take_in(paths, course, only)
        for line in intake.recognised:
            console.print(plain(line), markup=False)
        task = progress.add_task("grading", total=None)
        run = grade_class(
            intake.submissions,
            course,
            settings,
            out,
            jobs=jobs or default_jobs(),
            policy=feedback,
            fresh=fresh,
            scheduler=scheduler,
            on_start=lambda count: progress.update(task, total=count),
            on_result=lambda result: progress.advance(task),
        )
    console.print(class_table(run.results, run.problems))
    about = about_run(run.graded, run.changes, run.left_out, run.unchanged, run.outdated)
    for line in [*remarks(run.results), *intake.unmapped, *about]:
        console.print(plain(line), markup=False)
    graded = counted(len(run.results), "submission")
    console.print(f"{graded} graded. Reports are in {out}.", markup=False)
    if any(result.status == "internal" for result in run.results):
        sys.exit(OWN_FAULT)


def _require_outside(out: Path, paths: list[Path]) -> None:
    for path in paths:
        if out.resolve().is_relative_to(path.resolve()):
            stop(
                f"The folder for the reports, {plain(str(out))}, lies in {plain(str(path))}, where "
                "the next run would take it for a submission. Choose one beside it.",
                BAD_USAGE,
            )


@app.command()
def replay(
    path: Annotated[Path, typer.Argument(help="a submission, or CLASS/NAME")],
    test: Annotated[str, typer.Argument(help="such as test_module or 03/test_module[case]")],
    out: Annotated[Path, typer.Option(help="folder of results and reports")] = Path("reports"),
    timeout: Annotated[float, typer.Option(min=0.1, help="seconds for one call")] = 10.0,
    memory: Annotated[int, typer.Option(min=64, help="MB for one submission")] = 1024,
    isolation: Annotated[Isolation, typer.Option(help="how to keep code apart")] = Isolation.AUTO,
) -> None:
    """Run one graded test again, with its seed, and show everything about it."""
    settings = Settings(0, timeout, memory, isolation.value)
    with _faults():
        found = replay_test(path, test, own_course(), settings, out)
    console.print(replay_report(found), markup=False, soft_wrap=True)


@app.command()
def gradescope(
    folder: Annotated[Path, typer.Argument(help="where to write autograder.zip")],
    isolation: Annotated[Isolation, typer.Option(help="how to keep code apart")] = Isolation.AUTO,
    feedback: Annotated[
        Policy, typer.Option(help="what students read of hidden tests")
    ] = Policy.TITLES,
) -> None:
    """Build the archive by which Gradescope grades with this course."""
    with _faults():
        path = build_autograder(own_course(), folder, isolation.value, feedback)
    console.print(f"Upload {path} as the assignment's autograder.", markup=False, soft_wrap=True)


@app.command()
def audit(
    problems: Annotated[list[str] | None, typer.Argument(help="such as 03; default: all")] = None,
    out: Annotated[Path | None, typer.Option(help="folder for the tables as files")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="at a time; default: cores")] = None,
    write_fingerprints: Annotated[
        bool, typer.Option("--write-fingerprints", help="write fingerprints.json anew first")
    ] = False,
    parity: Annotated[
        bool, typer.Option("--parity", help="also run all behind the boundary and compare")
    ] = False,
) -> None:
    """Prove the course: what is right passes, what is wrong is caught and named."""
    course = own_course()
    with _faults():
        selected = course.select(problems or [])
        with _progress_bar() as progress:
            task = progress.add_task("auditing", total=len(list(candidates(course, selected))))
            found = run_audit(
                course,
                selected,
                jobs or default_jobs(),
                write_fingerprints=write_fingerprints,
                on_outcome=lambda outcome: progress.advance(task),
            )
        if parity:
            found.findings.extend(parity_findings(course, found, jobs or default_jobs()))
        if out is not None:
            write_tables(found, selected, out)
    for problem in selected:
        console.print(matrix(found, problem), legend(found, problem), "", sep="\n")
    for finding in found.findings:
        console.print(f"finding: {finding}", markup=False)
    console.print(found.summary())
    raise typer.Exit(1 if found.findings else 0)


@app.command()
def doctor() -> None:
    """Say what this machine has, how well it isolates, and what to do about what is missing."""
    found = examine()
    console.print(examination_table(found))
    for advice in found.advice:
        console.print(f"To do: {advice}", markup=False)
    raise typer.Exit(0 if found.can_grade else 1)


@app.command()
def release(
    folder: Annotated[Path, typer.Argument(help="a new folder, or an earlier copy to update")],
) -> None:
    """Write the students' copy of the course, or bring one up to date."""
    with _faults():
        done = write_release(own_course(), folder)
    console.print(done.summary(), markup=False)


def _progress_bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


@contextmanager
def _faults() -> Iterator[None]:
    """Turn what went wrong into one line and an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        stop("Stopped. What is done is kept; the same command goes on from there.", INTERRUPTED)
    except (SubmissionError, InUse, UsageError) as error:
        stop(plain(str(error)), BAD_USAGE)
    except (CourseError, GraderError) as error:
        stop(f"The grader failed, no mark was given: {error}", OWN_FAULT)
    except OSError as error:
        stop(f"Could not write the reports: {error}", OWN_FAULT)
