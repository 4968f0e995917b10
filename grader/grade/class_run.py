"""Grades a class into a folder of reports: what previous runs left and still holds is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.course import REFERENCE, Course
from grader.diagnose.unknown_answers import groups
from grader.files import locked, sha256_of, write_whole
from grader.grade.cluster import grade_on_cluster
from grader.grade.outcome import assemble
from grader.grade.pool import grade_all
from grader.grade.preparing import GRADEBOOK, prepare
from grader.grade.previous import RESULTS, Plan, keep_aside, save_result, sweep
from grader.grade.provenance import grader_sha256
from grader.grade.settings import Settings
from grader.grade.words import Words
from grader.gradebook.adjusting import adjusted, match_roster, of_earlier_files
from grader.gradebook.folder import FOLDER, GradebookFolder
from grader.gradebook.roster import Matched
from grader.intake.handed_in import Submission
from grader.reports.class_table import RunSummary
from grader.reports.dashboard import ClassFacts, NamelessMistake, dashboard
from grader.reports.feedback import feedback_page
from grader.reports.gradebook_csv import write_gradebook
from grader.reports.identical import identical_files
from grader.reports.sources import SOURCES, Sources
from grader.reports.student_page import STUDENT_PAGES, write_student_pages
from grader.result import Policy, ProblemResult, Status, SubmissionResult

_FEEDBACK = "feedback"
_INDEX = "index.html"
REPORT_FOLDERS = (RESULTS, _FEEDBACK, STUDENT_PAGES, SOURCES)
REPORT_FILES = (_INDEX, GRADEBOOK)
"""What a run writes: whether it can is found at the start, not after hours."""

_SOURCES = {".py", ".j2", ".js"}


@dataclass(kw_only=True)
class ClassRun(RunSummary):
    """What came of a run.

    Attributes:
        results: of the whole class, graded now or kept.
        problems: the ids of the problems that count and that somebody has a result for.
        optional: of each optional part that the reports speak of, the ids of its problems.
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
    """Grade what has to be graded and write all reports.

    Each result is written when it is ready, so that a run that is stopped goes on where it was.
    The gradebook is written last: what it says is what the last run that ended said.

    The reports show the whole class that the folder knows. What is not given now is kept as it is:
    whoever is not among the submissions, and of these the problems that they are not for.

    Args:
        submissions: the whole class, or a part of it.
        course: whose tests to run.
        settings: seed, limits and level of isolation.
        out: the folder of results and reports.
        jobs: how many to grade at a time.
        policy: what students read of hidden tests.
        fresh: whether to ignore previous results.
        is_whole: whether these say that they are the whole class, so that it is told who is
            missing. If it is not given, two submissions or more do.
        part: the only part to grade. The reports speak of an optional part if that is it, or if
            somebody has tried a problem of it.
        people: for what a submission is called, or its identity, whose it is.
        book: the instructor's own files; what lies beside `out` if it is not given.
        scheduler: address of a dask scheduler, whose workers grade in the place of this machine.
        on_start: called with the number of submissions to grade.
        on_result: called after each of them.

    Raises:
        InUse: another run writes to the folder.
        InternalError: the course's own tests or solutions are broken.
        UsageError: there is no such scheduler, or its workers can't grade this course; a file of
            the book can't be read; or the folder is another course's.
        OSError: the reports can't be written.
    """
    book = book or GradebookFolder(out.parent / FOLDER, out)
    with locked(out):
        sweep(out)
        adjusted([], book)  # a file that can't be read is told before hours of grading
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
        plans, before = ready.plans, ready.previous.results
        words = Words(course)
        for each in plans:
            each.kept = {id: words.renewed(problem) for id, problem in each.kept.items()}
        keep_aside(ready.previous, ready.names, course, out / RESULTS)
        keeper = _Keeper(out, course, settings, policy, part, book)
        keeper.keep_sources(each.submission for each in plans)
        left = [replace(r, problems=[*map(words.renewed, r.problems)]) for r in ready.absent]
        keeper.take_over([each for each in plans if not each.reasons], left, before)
        todo = {each.submission.name: each for each in plans if each.reasons}
        on_start(len(todo))

        def keep(result: SubmissionResult) -> None:
            keeper.add(result, todo[result.submission])
            on_result(result)

        _grade(todo.values(), course, settings, jobs, scheduler, keep)
        about_book = keeper.adjust()
        run = ready.summary(
            keeper.results,
            keeper.matched,
            book,
            about_book=about_book,
            asked=of_earlier_files(keeper.results, before, book),
        )
        keeper.write_class_reports(run)
    return ClassRun(
        **vars(run),
        results=keeper.shown(),
        problems=keeper.problems(),
        optional=keeper.optional(),
    )


def _grade(
    plans: Iterable[Plan],
    course: Course,
    settings: Settings,
    jobs: int,
    scheduler: str,
    on_result: Callable[[SubmissionResult], None],
) -> None:
    """Grade what the plans ask for, on this machine or on the workers of a scheduler."""
    submissions = [each.submission.only(each.reasons) for each in plans]
    if scheduler and submissions:
        grade_on_cluster(submissions, course, settings, scheduler, on_result)
    elif submissions:
        grade_all(submissions, course, settings, jobs, on_result)


class _Keeper:
    """Writes each result and what is shown of it, and in the end what is shown of the class."""

    def __init__(
        self,
        out: Path,
        course: Course,
        settings: Settings,
        policy: Policy,
        part: str | None,
        book: GradebookFolder,
    ) -> None:
        self.results: list[SubmissionResult] = []
        self._out = out
        self._book = book
        self._course = course
        self.matched = Matched()
        self._parts = {problem.id: problem.part for problem in course.problems()}
        self._part = part
        self._grader_sha256 = grader_sha256(course)
        self._settings = settings
        self._policy = policy
        self._sources = Sources(out / SOURCES)
        stamp = self._stamp()
        self._views_hold = stamp.is_file() and stamp.read_bytes() == self._views().encode()

    def take_over(
        self,
        plans: Iterable[Plan],
        absent: Iterable[SubmissionResult],
        previous: Mapping[str, SubmissionResult],
    ) -> None:
        """Keep results of which nothing has to be graded; write only what is new about them."""
        for result in (*(self._assembled(each, {}) for each in plans), *absent):
            if not self._views_hold or result != previous.get(result.submission):
                self._save(result)
            self.results.append(result)

    def add(self, result: SubmissionResult, plan: Plan) -> None:
        """Keep a result that was graded now, with the problems that did not have to be."""
        if result.status == Status.INTERNAL:
            # The next run grades again what is handed in now, but knows when it came first.
            result.problems = [*plan.kept.values(), *result.problems]
            result.identity, result.full_name = plan.submission.identity, plan.submission.full_name
        else:
            new = {problem.id: problem for problem in result.problems}
            for id, problem in new.items():
                problem.reason = plan.reasons[id]
            result = self._assembled(plan, new)
        self._save(result)
        self.results.append(result)

    def adjust(self) -> list[str]:
        """Apply what the book says, and return what it says that does nothing."""
        found, told = adjusted(self.results, self._book)
        for result, before in zip(found, self.results, strict=True):
            if result != before:
                self._save(result)
        self.results = found
        self.matched = match_roster(found, self._book)
        return told

    def sections(self) -> dict[str, str]:
        """Return the section of everybody, by the name of the submission, as the roster has it."""
        found = {r.submission: self.matched.section(r.who) for r in self.results}
        return {name: section for name, section in found.items() if section}

    def _assembled(self, plan: Plan, new: dict[str, ProblemResult]) -> SubmissionResult:
        found = plan.kept | new
        known = [(id, part) for id, part in self._parts.items() if id in found]
        problems = [replace(found[id], part=p.id, optional=p.optional) for id, p in known]
        return assemble(plan.submission, self._settings, self._grader_sha256, problems)

    def _save(self, result: SubmissionResult) -> None:
        """Write what students see, then the result: where it is, the others are too."""
        name, shown = result.submission, result.without_skipped()
        write_whole(self._out / _FEEDBACK / f"{name}.html", feedback_page(shown, self._policy))
        save_result(result, self._out / RESULTS)

    def keep_sources(self, submissions: Iterable[Submission]) -> None:
        """Keep the files as they are graded, for the pages that show them."""
        files = (file for submission in submissions for file in submission.files.values())
        self._sources.keep(file.source for file in files if file.source is not None)

    def shown(self) -> list[SubmissionResult]:
        """Return the results as reports show them, sorted by submission."""
        results = [result.without_skipped() for result in self.results]
        return sorted(results, key=lambda result: result.submission)

    def problems(self) -> list[str]:
        """Return the ids of the problems that count and that somebody has a result for.

        They are all of them if nobody has a result for anything.
        """
        known = {problem.id for result in self.results for problem in result.problems}
        asked = {id for id, part in self._parts.items() if self._part in (None, part.id)}
        return [id for id in self._counted() if id in known or not known and id in asked]

    def _counted(self) -> list[str]:
        return [id for id, part in self._parts.items() if not part.optional]

    def optional(self) -> dict[str, list[str]]:
        """Return the problems of each optional part that somebody tried or that was asked for."""
        tried = {id for result in self.results for id in result.optional}
        shown: dict[str, list[str]] = {}
        for id, part in self._parts.items():
            if part.optional and part.id in {*tried, self._part}:
                shown.setdefault(part.id, []).append(id)
        return shown

    def write_class_reports(self, run: RunSummary) -> None:
        """Write what is about the whole class; the gradebook last."""
        shown, problems, optional = self.shown(), self.problems(), self.optional()
        identical = identical_files(shown, self._sources, self._own_files())
        write_student_pages(shown, self._sources, self._out / STUDENT_PAGES, identical)
        about = ClassFacts(run.news, self.sections(), run.absent, _nameless(shown))
        write_whole(self._out / _INDEX, dashboard(shown, problems, identical, optional, about))
        write_whole(self._stamp(), self._views())
        gradebook = self._out / GRADEBOOK
        write_gradebook(shown, self._counted(), gradebook, optional, about.sections)
        self._sources.keep_only(p.sha256 for result in self.results for p in result.problems)

    def _own_files(self) -> dict[str, dict[str, bytes]]:
        """Return the course's own right files of each problem, by what reports call them."""
        found: dict[str, dict[str, bytes]] = {}
        for problem in self._course.problems():
            files = self._course.right_files(problem).items()
            named = [(n if n == REFERENCE else f"{n}.py", p) for n, p in files if p.is_file()]
            found[problem.id] = {f"the course's own {n}": p.read_bytes() for n, p in named}
        return found

    def _stamp(self) -> Path:
        return self._out / ".views"

    def _views(self) -> str:
        """Return what the students' views were made by: while it is the same they need not be."""
        reports = Path(__file__).parents[1] / "reports"
        files = {p.relative_to(reports).as_posix(): p for p in reports.rglob("*.*")}
        made_by = {name: path for name, path in files.items() if path.suffix in _SOURCES}
        return f"{self._policy} {sha256_of(made_by)}"


def _nameless(results: Iterable[SubmissionResult]) -> list[NamelessMistake]:
    valid = [result for result in results if result.status != Status.INTERNAL]
    return [
        NamelessMistake(each.problem, each.owners, each.failed, each.submissions)
        for each in groups(valid)
    ]
