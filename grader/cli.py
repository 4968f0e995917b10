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
from grader.batch import GraderError, default_jobs, grade_all
from grader.course import CourseError, UsageError, own_course
from grader.grade import Settings
from grader.release import release as write_release
from grader.reports.audit import legend, matrix, write_tables
from grader.reports.feedback import Policy
from grader.reports.feedback import feedback as student_feedback
from grader.reports.gradebook import write_gradebook
from grader.reports.terminal import class_table, remarks
from grader.result import SubmissionResult, write_whole
from grader.student_cli import BAD_USAGE, OWN_FAULT, app, console, stop
from grader.submissions import SubmissionError, take_in


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
) -> None:
    """Grade submissions and write results, gradebook and feedback to a folder."""
    course = own_course()
    settings = Settings(seed, timeout, memory, isolation.value)
    results: list[SubmissionResult] = []
    with _faults():
        ids = [problem.id for problem in course.problems()]
        intake = take_in(paths, course)
        submissions = intake.submissions
        for line in intake.recognised:
            console.print(line, markup=False)
        with _progress_bar() as progress:
            task = progress.add_task("grading", total=len(submissions))

            def keep(result: SubmissionResult) -> None:
                result.save(out / "results")
                text = student_feedback(result, feedback)
                write_whole(out / "feedback" / f"{result.submission}.md", text)
                results.append(result)
                progress.advance(task)

            grade_all(submissions, course, settings, jobs or default_jobs(), keep)
        write_gradebook(results, ids, out / "gradebook.csv")
    console.print(class_table(results, ids))
    for line in [*remarks(results), *intake.unmapped]:
        console.print(line, markup=False)
    console.print(f"{len(results)} submissions graded. Reports are in {out}.", markup=False)
    if any(result.status == "internal" for result in results):
        sys.exit(OWN_FAULT)


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
    except SubmissionError as error:
        stop(str(error), BAD_USAGE)
    except UsageError as error:
        stop(str(error), BAD_USAGE)
    except (CourseError, GraderError) as error:
        stop(f"The grader failed, no mark was given: {error}", OWN_FAULT)
    except OSError as error:
        stop(f"Could not write the reports: {error}", OWN_FAULT)
