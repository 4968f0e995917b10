"""The commands of instructors and course authors, and their options.

This is the entry point of the course's repository. It adds these commands to those of `cli.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grader.cli import (
    BAD_USAGE,
    GRADERS_FAULT,
    SomeProblems,
    app,
    console,
    print_lines,
    print_text,
    reported_errors,
    stop,
    this_course,
)
from grader.course import command
from grader.errors import UsageError
from grader.files import require_writable
from grader.result import Isolation, Policy, SubmissionResult
from grader.text import counted, plain, quoted

if TYPE_CHECKING:
    from grader.intake.handed_in import Intake

_FOR_INSTRUCTORS = "For instructors and course authors"

# Options that several commands share
_RARE = "Rarely used options"
Seconds = Annotated[
    float,
    typer.Option(
        min=0.1,
        max=3600,
        help="stop a call of a function after this many seconds",
        rich_help_panel=_RARE,
    ),
]
MemoryLimit = Annotated[
    int,
    typer.Option(
        min=64,
        max=1_000_000,
        help="let a submission use at most this many MB",
        rich_help_panel=_RARE,
    ),
]
KeptApart = Annotated[
    Isolation,
    typer.Option(help="run student code in a sandbox, or in a process without confinement"),
]
Feedback = Annotated[Policy, typer.Option(help="show students this much of the hidden tests")]
PartOfCourse = Annotated[
    str | None, typer.Option(help="grade only this part of the course; default: all parts")
]
BookFolder = Annotated[
    Path | None,
    typer.Option(
        "--book",
        help="read corrections.csv and your other files in this folder; default: book, next to the "
        "reports",
    ),
]
ReportsFolder = Annotated[Path, typer.Option(help="read the results in this folder")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, max=1000, help="process this many files at a time; default: one per core"),
]


@app.command(rich_help_panel=_FOR_INSTRUCTORS)
def grade(
    path: Annotated[Path, typer.Argument(help="submission, class or download of a platform")],
    out: Annotated[Path, typer.Option(help="write results and reports to this folder")],
    problem: Annotated[
        str | None,
        typer.Option(
            help="grade only this problem, for example 03; its problem.py may be in any folder"
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="grade only the submission with this identity or name; can be repeated"),
    ] = None,
    part: PartOfCourse = None,
    book: BookFolder = None,
    jobs: Jobs = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="show how each file would be graded; write nothing"),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="grade everything again, and ignore kept results")
    ] = False,
    feedback: Feedback = Policy.TITLES,
    isolation: KeptApart = Isolation.SANDBOX,
    scheduler: Annotated[
        str,
        typer.Option(help="grade on the workers of the dask scheduler at this address"),
    ] = "",
    seed: Annotated[
        int,
        typer.Option(help="draw the inputs of the tests from this seed", rich_help_panel=_RARE),
    ] = 0,
    timeout: Seconds = 10.0,
    memory: MemoryLimit = 1024,
) -> None:
    """Grade submissions and write results, gradebook and feedback to a folder."""
    _require_outside(out, path)
    with reported_errors() as on_early_end:
        from grader.grade.class_reports import REPORT_FILES, REPORT_FOLDERS
        from grader.grade.class_run import grade_class
        from grader.grade.previous import RESULTS, require_this_version
        from grader.grade.same_person import as_on_roster
        from grader.grade.settings import Settings, default_jobs
        from grader.gradebook.folder import open_gradebook_folder
        from grader.intake.identity import only_these
        from grader.intake.names_file import NAMES_FILE, read_names
        from grader.intake.submissions import read_submissions
        from grader.reports.class_table import (
            about_book,
            about_run,
            class_table,
            optional_table,
            remarks,
        )
        from grader.reports.progress_bar import progress_bar

        course = this_course()
        _require_one_of(problem, part)
        settings = Settings(seed, timeout, memory, isolation)
        require_this_version(out / RESULTS)
        if not dry_run:
            require_writable(out, REPORT_FOLDERS, REPORT_FILES)
        chosen = None if problem is None else course.select([problem])[0]
        book_folder, messages = open_gradebook_folder(book, out)
        names = read_names(book_folder.path(NAMES_FILE), (each.id for each in course.problems()))
        with progress_bar() as progress:
            intake = read_submissions(path, course, chosen, names.problems)
            intake.require_work()
            submissions = as_on_roster(intake.submissions, book_folder.roster)
            submissions = only_these(submissions, only) if only else submissions
            print_lines([*intake.recognised, *messages])
            is_whole = intake.is_whole and not only
            if not scheduler and not dry_run:
                print_lines(_about_other_runs())
            if dry_run:
                from grader.grade.dry_run import forecast_lines, make_forecast, reading_table
                from grader.grade.preparing import prepare

                ready = prepare(
                    submissions,
                    course,
                    settings,
                    out,
                    people=names.people,
                    fresh=fresh,
                    is_whole=is_whole,
                    part=part,
                )
                ready.require_book(book_folder, course, settings)
                forecast = make_forecast(ready, settings, book_folder)
                console.print(reading_table(forecast))
                print_lines([*intake.unmatched, *forecast_lines(forecast)])
                return
            task = progress.add_task("grading", total=None)

            def graded_one(_: SubmissionResult) -> None:
                progress.advance(task)
                on_early_end[:] = [
                    "Finished results are kept; run the same command again to continue."
                ]

            run = grade_class(
                submissions,
                course,
                settings,
                out,
                jobs=jobs or default_jobs(),
                policy=feedback,
                fresh=fresh,
                is_whole=is_whole,
                part=part,
                people=names.people,
                book=book_folder,
                scheduler=scheduler,
                on_start=lambda count: progress.update(task, total=count),
                on_result=graded_one,
            )
        if run.problems:
            console.print(class_table(run.results, run.problems))
        for each, ids in run.optional.items():
            console.print(optional_table(run.results, each, ids))
        about_class = [] if only else _about_class_named_as_student(path, intake, out)
        print_lines([*remarks(run.results), *intake.unmatched, *about_class, *about_run(run)])
        graded, kept = counted(run.graded, "submission"), len(run.results) - run.graded
        about_kept = f", {kept} as before" if kept else ""
        console.print(f"{graded} graded{about_kept}. Reports are in {out}.", markup=False)
        print_lines(about_book(run))
    if any(result.status == "internal" for result in run.results):
        sys.exit(GRADERS_FAULT)


def _about_class_named_as_student(path: Path, intake: Intake, out: Path) -> list[str]:
    """Return a warning if the path was read as a class but has the name of a graded student."""
    from grader.grade.previous import RESULTS, result_path
    from grader.intake.tree import without_suffix

    student = result_path(out / RESULTS, without_suffix(path.resolve().name))
    if not intake.is_whole or not student.is_file():
        return []
    return [
        f"{quoted(path.name)} was read as a class, although a student has that name. If it is "
        "that student's submission, the folders in it are not students: remove the folders from "
        "the submission and grade the class again."
    ]


def _about_other_runs() -> list[str]:
    """Return a message if other runs use cores of this machine."""
    from grader.grade.cores import taken_by_others

    taken, there = taken_by_others()
    if not taken:
        return []
    effect = (
        "this run uses the others"
        if taken < there
        else "both runs share them, and each takes longer"
    )
    return [f"Another run of the grader uses {taken} of {counted(there, 'core')}; {effect}."]


def _require_one_of(problem: str | None, part: str | None) -> None:
    if problem is not None and part is not None:
        raise UsageError("Use --problem or --part, not both.")


def _require_outside(out: Path, path: Path) -> None:
    if out.resolve().is_relative_to(path.resolve()):
        stop(
            f"The folder for the reports, {plain(str(out))}, is in {plain(str(path))}, where "
            "the next run would read it as a submission. Choose a folder next to it.",
            BAD_USAGE,
        )


@app.command(rich_help_panel=_FOR_INSTRUCTORS)
def replay(
    path: Annotated[Path, typer.Argument(help="submission, or CLASS/NAME")],
    test: Annotated[str, typer.Argument(help="test, for example test_module or 03/test_module")],
    reports: ReportsFolder = Path("reports"),
    isolation: KeptApart = Isolation.SANDBOX,
    timeout: Seconds = 10.0,
    memory: MemoryLimit = 1024,
) -> None:
    """Run one graded test again with the same seed, and show all details."""
    with reported_errors():
        from grader.grade.replay import replay as replay_test
        from grader.grade.replay import report
        from grader.grade.settings import Settings

        settings = Settings(0, timeout, memory, isolation)
        replayed = replay_test(path, test, this_course(), settings, reports)
    console.print(report(replayed), markup=False, soft_wrap=True)


@app.command(rich_help_panel=_FOR_INSTRUCTORS)
def export(
    platform: Annotated[str, typer.Argument(help="canvas, moodle, gradescope or csv")],
    file: Annotated[Path, typer.Argument(help="the file that you downloaded from the platform")],
    reports: ReportsFolder = Path("reports"),
    book: BookFolder = None,
    problem: Annotated[
        str, typer.Option(help="fill in the marks of this problem, for example 03")
    ] = "",
    total: Annotated[
        bool, typer.Option("--total", help="fill in the sum of all required problems")
    ] = False,
    column: Annotated[str, typer.Option(help="fill in the column with this name or id")] = "",
    new_column: Annotated[str, typer.Option(help="add a column with this name")] = "",
    id_column: Annotated[str, typer.Option(help="for csv: match students by this column")] = "",
    out: Annotated[
        Path | None, typer.Option(help="write to this file; default: the name of FILE with -filled")
    ] = None,
    feedback: Annotated[
        Path | None,
        typer.Option(help="for canvas and moodle: pack feedback into this zip file"),
    ] = None,
    download: Annotated[
        Path | None,
        typer.Option(help="for canvas: name feedback files as in this download"),
    ] = None,
) -> None:
    """Fill marks into the gradebook or worksheet that you downloaded from a platform."""
    with reported_errors():
        from grader.grade.previous import RESULTS, load_previous
        from grader.grade.same_person import same_people
        from grader.gradebook.export.exporting import ExportRequest, export_from
        from grader.gradebook.folder import open_gradebook_folder
        from grader.intake.names_file import NAMES_FILE, read_names
        from grader.text import line

        if bool(problem) is total:
            raise UsageError("Choose the marks: --problem 03, or --total for the sum.")
        book_folder, about_book = open_gradebook_folder(book, reports)
        previous = load_previous(reports / RESULTS)
        ids = [each.id for each in this_course().problems()]
        people = read_names(book_folder.path(NAMES_FILE), ids).people
        same = same_people(previous.results.values(), people, book_folder.roster)
        request = ExportRequest(
            platform=platform,
            file=file,
            folder=reports,
            book=book_folder,
            problem=this_course().select([problem])[0].id if problem else "",
            column=column,
            new_column=new_column,
            id_column=id_column,
            also=same.also,
            out=out or file.with_name(f"{file.stem}-filled{file.suffix}"),
            feedback=feedback,
            download=download,
        )
        rows = same.rows(previous.results.values())
        messages = export_from(request, rows, [*previous.damaged])
    for text in [*about_book, *messages]:
        console.print(line(text), markup=False, soft_wrap=True)


@app.command(rich_help_panel=_FOR_INSTRUCTORS)
def doctor() -> None:
    """Check what is installed on this machine and how well it isolates student code."""
    with reported_errors():
        from grader.grade.doctor import examination_table, examine

        examination = examine()
    console.print(examination_table(examination))
    for advice in examination.advice:
        console.print(f"To do: {advice}", markup=False)
    raise typer.Exit(0 if examination.can_grade else 1)


# For course authors

author = typer.Typer(help="Check, extend and release the course.", rich_markup_mode="rich")
app.add_typer(author, name="author", rich_help_panel=_FOR_INSTRUCTORS)


@author.command()
def audit(
    problems: SomeProblems = None,
    out: Annotated[
        Path | None,
        typer.Option(help="write audit.csv, a table of mistakes and tests, to this folder"),
    ] = None,
    jobs: Jobs = None,
    write_fingerprints: Annotated[
        bool, typer.Option("--write-fingerprints", help="write fingerprints.json before the audit")
    ] = False,
    record: Annotated[
        Path | None, typer.Option(help="write the outcome of every test to this file")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="list differences from this file, which --record wrote")
    ] = None,
    with_: Annotated[
        list[Path] | None,
        typer.Option(
            "--with", help="also grade this class, for --record and --against; can be repeated"
        ),
    ] = None,
    show: Annotated[
        str, typer.Option(help="print the file of this mistake, and do nothing else")
    ] = "",
) -> None:
    """Prove that correct files pass, and that each mistake is caught and named."""
    with reported_errors():
        from grader.author.audit import run_audit
        from grader.author.candidates import candidates
        from grader.author.mistake import mistaken_file
        from grader.author.record import (
            differences,
            graded_submissions,
            read_records,
            records_of,
            write_records,
        )
        from grader.author.sweep import sweep_findings
        from grader.author.tables import TABLE, legend, matrix, points_kept, write_table
        from grader.grade.settings import default_jobs
        from grader.reports.progress_bar import progress_bar

        course = this_course()
        selected = course.select(problems or [])
        if show:
            typer.echo(mistaken_file(course, selected, show), nl=False)
            return
        if out is not None:
            require_writable(out, (), (TABLE,))
        before = None if against is None else read_records(against)
        with progress_bar() as progress:
            task = progress.add_task("auditing", total=len(list(candidates(course, selected))))
            result = run_audit(
                course,
                selected,
                jobs or default_jobs(),
                write_fingerprints=write_fingerprints,
                all_tests=any((out, record, against)),
                on_outcome=lambda outcome: progress.advance(task),
            )
        swept = sweep_findings(
            course, selected, jobs=jobs or default_jobs(), write=write_fingerprints
        )
        result.findings.extend(swept)
        if out is not None:
            write_table(result, selected, out)
        graded = (
            graded_submissions(with_, course, selected, jobs or default_jobs()) if with_ else []
        )
        now = records_of(result, graded)
        if record is not None:
            write_records(now, record)
        changed = [] if before is None else list(differences(before, now))
    for each in selected:
        console.print(matrix(result, each), legend(result, each), "", sep="\n")
        console.print(points_kept(result, each), "", sep="\n")
        share = f"{result.by_claims[each.id]:.0%} of the points"
        console.print(f"{share} are given for checks that compare no value\n")
    print_lines(f"finding: {finding}" for finding in result.findings)
    if result.probed and not write_fingerprints:
        probed = counted(result.probed, "correct or wrong file")
        console.print(f"{probed} probed again; --write-fingerprints saves the answers")
    console.print(result.summary())
    if before is not None:
        print_lines([*changed, counted(len(changed), "difference")])
    raise typer.Exit(1 if result.findings or changed else 0)


@author.command()
def new(
    name: Annotated[str, typer.Argument(help="number and name, for example 12-layer-norm")],
    part: Annotated[str, typer.Option(help="add it to this part; default: the last one")] = "",
) -> None:
    """Write a tiny problem that passes the audit, as a template for a new problem."""
    with reported_errors():
        from grader.author.new import new_problem

        problem = new_problem(this_course(), name, part)
    print_text(
        f"{problem.id} is in problems/, solutions/ and course.toml; comments in these files "
        f"describe the next steps."
    )
    typer.echo(f"To check it: {command(f'author audit {problem.id[:2]} --write-fingerprints')}")


@author.command()
def release(
    folder: Annotated[Path, typer.Argument(help="new folder, or an earlier copy to update")],
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="include this part, or all; can be repeated; default: as in the earlier copy"
        ),
    ] = None,
    solutions: Annotated[
        bool | None,
        typer.Option(
            help="include solutions/, for self-learners or after the deadline; default: as in the "
            "earlier copy"
        ),
    ] = None,
    notebooks: Annotated[
        bool | None, typer.Option(help="include a notebook for each problem")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="show this address on the front page of the copy")
    ] = None,
) -> None:
    """Write the students' copy of the course, or update one.

    An update keeps the parts and options of the copy. A new copy contains all parts, but no
    solutions.
    """
    with reported_errors():
        from grader.author.release import release as write_release

        course = this_course()
        every = [each.id for each in course.manifest.parts]
        parts = every if part == ["all"] else [course.manifest.part(id).id for id in part or []]
        done = write_release(
            course,
            folder,
            parts,
            solutions=solutions,
            notebooks=notebooks,
            url=url,
        )
    console.print(done.summary(), markup=False)


@author.command()
def gradescope(
    folder: Annotated[Path, typer.Argument(help="write the archive to this folder")] = Path(
        "autograder"
    ),
    isolation: KeptApart = Isolation.SANDBOX,
    feedback: Feedback = Policy.TITLES,
    problem: Annotated[
        str | None, typer.Option(help="grade only this problem, for example 03")
    ] = None,
    part: PartOfCourse = None,
) -> None:
    """Build the archive with which Gradescope grades this course."""
    with reported_errors():
        from grader.grade.autograder import build

        course = this_course()
        _require_one_of(problem, part)
        only = None if problem is None else course.select([problem])[0]
        path = build(course, folder, isolation, feedback, only, part)
    console.print(f"Upload {path} as the assignment's autograder.", markup=False, soft_wrap=True)
