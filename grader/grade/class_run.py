"""Grade a class, write its reports to a folder, and keep valid results of previous runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.course import Course
from grader.files import locked
from grader.grade.class_reports import ClassReports
from grader.grade.cluster import grade_on_cluster
from grader.grade.outcome import assemble
from grader.grade.pool import grade_all
from grader.grade.preparing import prepare
from grader.grade.previous import RESULTS, Plan, keep_aside, save_result, sweep
from grader.grade.provenance import grader_sha256
from grader.grade.same_person import SamePeople, same_people, suggested_lines
from grader.grade.settings import Settings
from grader.grade.words import Words
from grader.gradebook.adjusting import ClassBook
from grader.gradebook.folder import FOLDER, GradebookFolder
from grader.intake.handed_in import Submission
from grader.reports.class_table import RunSummary
from grader.reports.sources import SOURCES, Sources
from grader.result import Policy, ProblemResult, Status, SubmissionResult


@dataclass(kw_only=True)
class ClassRun(RunSummary):
    """The outcome of a run.

    Attributes:
        results: the results of the whole class, graded now or kept from previous runs.
        problems: the ids of the required problems that have a result.
        optional: maps the id of each optional part in the reports to the ids of its problems.
    """

    results: list[SubmissionResult]
    problems: list[str]
    optional: dict[str, list[str]]


def grade_class(
    submissions: Sequence[Submission],
    course: Course,
    settings: Settings,
    out: Path,
    *,
    jobs: int,
    policy: Policy,
    fresh: bool = False,
    is_whole: bool | None = None,
    part: str | None = None,
    people: Mapping[str, str] | None = None,
    book: GradebookFolder | None = None,
    scheduler: str = "",
    on_start: Callable[[int], None] = lambda count: None,
    on_result: Callable[[SubmissionResult], None] = lambda result: None,
) -> ClassRun:
    """Grade new and changed submissions and write all reports.

    Each result is written as soon as it is complete, so that an interrupted run can continue. The
    gradebook is written last, so a gradebook always belongs to a completed run.

    The reports show all students with a result in the folder. Results of previous runs are kept if
    their student or problem does not occur in `submissions`.

    Args:
        submissions: the whole class, or a part of it.
        course: the course with the tests.
        settings: seed, limits and level of isolation.
        out: the folder of results and reports.
        jobs: the number of submissions to grade at the same time.
        policy: how much of the hidden tests the feedback shows.
        fresh: whether to grade again even if a previous result is still valid.
        is_whole: whether `submissions` contains the whole class. If it does, missing students are
            reported. None means True for two or more submissions, and False for one.
        part: the only part to grade; None for all parts. The reports show an optional part if
            `part` names it, or if a student attempted one of its problems.
        people: the students in `names.csv`. It maps the cells of the column `found` to those of the
            column `means`.
        book: the folder with the instructor's files. The default is the folder `book` next to
            `out`.
        scheduler: the address of a dask scheduler. Its workers grade instead of this machine. If
            it is empty, this machine grades.
        on_start: called with the number of submissions to grade.
        on_result: called with each new result.

    Raises:
        InUse: another run writes to the folder.
        InternalError: the course's own tests or solutions are broken.
        UsageError: the scheduler does not answer, its workers can't grade this course, a line in
            the instructor's files can't be applied, or the folder belongs to another course.
        OSError: the reports can't be written.
    """
    book = book or GradebookFolder(out.parent / FOLDER)
    with locked(out):
        ready = prepare(
            submissions,
            course,
            settings,
            out,
            people=people or {},
            fresh=fresh,
            is_whole=is_whole,
            part=part,
        )
        ready.require_book(book, course, settings)
        sweep(out)
        plans, before = ready.plans, ready.previous.results
        words = Words(course)
        for each in plans:
            each.kept = {id: words.renewed(problem) for id, problem in each.kept.items()}
        keep_aside(ready.previous, ready.names, out / RESULTS)
        keeper = _Keeper(out, course, settings)
        keeper.keep_sources(each.submission for each in plans)
        left = [replace(r, problems=[*map(words.renewed, r.problems)]) for r in ready.absent]
        keeper.take_over([each for each in plans if not each.reasons], left, before)
        todo = {each.submission.name: each for each in plans if each.reasons}
        on_start(len(todo))

        def keep(result: SubmissionResult) -> None:
            keeper.add(result, todo[result.submission])
            on_result(result)

        _grade(todo.values(), course, settings, jobs, scheduler, keep)
        same = same_people(keeper.results, ready.people, book.roster)
        class_book = ClassBook(same.rows(keeper.results), book, same.also)
        rows = class_book.results
        keeper.keep_adjustments(same, rows)
        rows_before = {row.submission: row for row in same.rows(before.values())}
        run = ready.summary(
            rows,
            same,
            class_book.matched,
            book,
            about_book=class_book.messages,
            asked=[
                *suggested_lines(rows, ready.rows_of(same), ready.people, book.roster),
                *class_book.questions_about_new_files(rows_before),
                *class_book.lower_than_before(rows_before),
            ],
        )
        reports = ClassReports(rows, course, part)
        reports.write(out, run, policy, class_book.matched, keeper.sources)
    return ClassRun(
        **vars(run),
        results=reports.shown,
        problems=reports.problems(),
        optional=reports.optional(),
    )


def _grade(
    plans: Iterable[Plan],
    course: Course,
    settings: Settings,
    jobs: int,
    scheduler: str,
    on_result: Callable[[SubmissionResult], None],
) -> None:
    """Grade the planned problems. If `scheduler` is empty, grade on this machine."""
    submissions = [each.submission.only(each.reasons) for each in plans]
    if scheduler and submissions:
        grade_on_cluster(submissions, course, settings, scheduler, on_result)
    elif submissions:
        grade_all(submissions, course, settings, jobs, on_result)


class _Keeper:
    """Collects the results of a run, and writes each result as soon as it is complete."""

    def __init__(self, out: Path, course: Course, settings: Settings) -> None:
        self.results: list[SubmissionResult] = []
        self.sources = Sources(out / SOURCES)
        self._folder = out / RESULTS
        self._parts = {problem.id: problem.part for problem in course.problems()}
        self._grader_sha256 = grader_sha256(course)
        self._settings = settings

    def keep_sources(self, submissions: Iterable[Submission]) -> None:
        """Save the submitted files for the pages that show them."""
        files = (file for submission in submissions for file in submission.files.values())
        self.sources.keep(file.source for file in files if file.source is not None)

    def take_over(
        self,
        plans: Iterable[Plan],
        absent: Iterable[SubmissionResult],
        previous: Mapping[str, SubmissionResult],
    ) -> None:
        """Collect the results that need no grading, and write those that have changed.

        Args:
            plans: plans without a problem to grade.
            absent: the results of students who are not among the submissions.
            previous: maps the name of each submission to its result from the previous runs.
        """
        for result in (*(self._assembled(each, {}) for each in plans), *absent):
            if result != previous.get(result.submission):
                save_result(result, self._folder)
            self.results.append(result)

    def add(self, result: SubmissionResult, plan: Plan) -> None:
        """Combine a new result with the kept results of the submission, and write it."""
        if result.status == Status.INTERNAL:
            # The next run grades these files again. It reads the times of their first submissions.
            result.problems = [*plan.kept.values(), *result.problems]
            result.identity, result.full_name = plan.submission.identity, plan.submission.full_name
        else:
            new = {problem.id: problem for problem in result.problems}
            for id, problem in new.items():
                problem.reason = plan.reasons[id]
            result = self._assembled(plan, new)
        save_result(result, self._folder)
        self.results.append(result)

    def keep_adjustments(self, same: SamePeople, rows: Iterable[SubmissionResult]) -> None:
        """Copy the instructor's adjustments from the gradebook rows to the saved results.

        Args:
            same: describes which results each row combines.
            rows: the results of the rows, with the adjustments.
        """
        of_row = {row.submission: row for row in rows}
        for result in self.results:
            name = result.submission
            row = of_row[same.row_of.get(name, name)]
            counted = {problem.id: problem for problem in row.problems}
            problems = [_with_adjustments(problem, counted) for problem in result.problems]
            full_name = row.full_name if row.submission == name else result.full_name
            if (problems, full_name) != (result.problems, result.full_name):
                save_result(replace(result, problems=problems, full_name=full_name), self._folder)

    def _assembled(self, plan: Plan, new: dict[str, ProblemResult]) -> SubmissionResult:
        results = plan.kept | new
        known = [(id, part) for id, part in self._parts.items() if id in results]
        problems = [replace(results[id], part=p.id, optional=p.optional) for id, p in known]
        return assemble(plan.submission, self._settings, self._grader_sha256, problems)


def _with_adjustments(
    problem: ProblemResult, counted: Mapping[str, ProblemResult]
) -> ProblemResult:
    """Return a problem's result with the adjustments from the gradebook row.

    If the row counts a different result for this problem, return the result without adjustments.

    Args:
        problem: the result of a problem.
        counted: maps problem ids to the results that the row counts.
    """
    now, without = counted.get(problem.id), replace(problem, adjustments=[])
    return now if now and replace(now, adjustments=[]) == without else without
