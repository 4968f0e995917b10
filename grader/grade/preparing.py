"""Prepare a run before grading, and summarize it. Dry runs use the same code."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course import Course, Problem
from grader.errors import CourseError, UsageError
from grader.grade.outcome import assemble
from grader.grade.previous import (
    RESULTS,
    Plan,
    Previous,
    about_replaced,
    load_previous,
    named_as_before,
    outdated,
    plan,
    require_same_course,
)
from grader.grade.processes import call_apart
from grader.grade.provenance import common_provenance
from grader.grade.same_person import SamePeople, same_people, suggested_lines
from grader.grade.settings import Settings
from grader.gradebook.adjusting import ClassBook
from grader.gradebook.folder import GradebookFolder
from grader.gradebook.lines import Correction, read_lines
from grader.gradebook.roster import Matched
from grader.intake.handed_in import Submission
from grader.intake.submissions import without_skipped
from grader.reports.class_table import RunSummary
from grader.reports.display_names import people as people_of
from grader.reports.gradebook_csv import GradebookRow, changes, read_gradebook
from grader.reports.news import News
from grader.result import (
    Isolation,
    ProblemResult,
    Provenance,
    Status,
    SubmissionResult,
    TestResult,
    readable_names,
)
from grader.text import cell

GRADEBOOK = "gradebook.csv"


@dataclass(frozen=True)
class Prepared:
    """A prepared run.

    Attributes:
        plans: the problems to grade and to keep, for each submission.
        absent: the results of students who are not among the submissions.
        previous: the results of previous runs.
        gradebook: maps identities to the rows of the last run's gradebook.
        common: maps the id of each problem to the provenance that all students share.
        people: the students in `names.csv`. It maps the cells of the column `found` to those of the
            column `means`.
        is_whole: whether the submissions are the whole class.
        about_files: remarks on new names of result files, and on submissions that replace others.
    """

    plans: Sequence[Plan]
    absent: Sequence[SubmissionResult]
    previous: Previous
    gradebook: dict[str, GradebookRow]
    common: dict[str, Provenance]
    people: Mapping[str, str]
    is_whole: bool
    about_files: Sequence[str]

    @property
    def names(self) -> set[str]:
        """The names of the submissions."""
        return {each.submission.name for each in self.plans}

    def rows_of(self, same: SamePeople) -> set[str]:
        """Return the names of the gradebook rows to which the submissions belong."""
        return {same.row_of.get(name, name) for name in self.names}

    def require_book(self, book: GradebookFolder, course: Course, settings: Settings) -> None:
        """Check before grading that each line of the instructor's files can be applied.

        Raises:
            UsageError: a line can't be applied. The message names the line and a correction.
        """
        problems = course.problems()
        ungraded = _ungraded(problems, book)
        results = [
            assemble(each.submission, settings, "", each.with_ungraded(ungraded))
            for each in self.plans
        ]
        results += self.absent
        same = same_people(results, self.people, book.roster)
        rows = same.rows(results)
        try:
            is_whole = self.is_whole or bool(self.absent)
            made = ClassBook(rows, book, same.also, [*ungraded], is_whole=is_whole)
            made.require_effect()
        except UsageError as error:
            # Perhaps two rows belong to one person, so also suggest lines for names.csv.
            asked = suggested_lines(rows, self.rows_of(same), self.people, book.roster)
            raise UsageError("\n".join([str(error), *asked])) from None

    def summary(
        self,
        rows: Iterable[SubmissionResult],
        same: SamePeople,
        matched: Matched,
        book: GradebookFolder,
        *,
        about_book: Iterable[str],
        asked: Iterable[str],
        pending: Collection[tuple[str, str]] = (),
    ) -> RunSummary:
        """Return the summary of a run.

        Args:
            rows: the results of the whole class, with the adjustments from the instructor's files.
            same: describes which results each row combines.
            matched: the submissions of the class, matched with the roster.
            book: the instructor's files.
            about_book: remarks on the instructor's files.
            asked: questions to the instructor about corrections and names.
            pending: the gradebook's (row, column) pair of each mark that a run would add.
        """
        rows = sorted(rows, key=lambda row: row.submission)
        shown = [row.without_skipped() for row in rows]
        before, here = self.gradebook, self.rows_of(same)
        results = self.previous.results
        known = {row.submission: row for row in same.rows(results.values())}
        who, called = people_of(shown), readable_names(rows)
        joined = {results[n].who: called[row] for n, row in same.row_of.items() if n in results}
        news = News(
            is_first=not before,
            changes=changes(before, rows, known, pending, joined),
            new=[who[row.submission] for row in shown if cell(row.who) not in before],
            missing=[called[row.submission] for row in rows if row.submission not in here]
            if self.is_whole
            else [],
            about_book=[*same.unclear, *about_book],
            of_one_problem=self._is_of_one_problem(),
        )
        return RunSummary(
            graded=sum(bool(each.reasons) for each in self.plans),
            news=news,
            outdated=outdated(shown, self.common),
            damaged=self.previous.damaged,
            lost=sorted({*self.previous.damaged} - self.names),
            messages=[
                *self.about_files,
                *_about_roster(rows, matched, book),
                *asked,
            ],
            absent=sorted(entry.shown for entry in matched.absent),
        )

    def _is_of_one_problem(self) -> bool:
        """Return whether only one problem was submitted, although the course has several."""
        asked = {tuple(each.submission.files) for each in self.plans}
        return len(self.common) > 1 and [len(ids) for ids in asked] == [1]


def prepare(
    submissions: Sequence[Submission],
    course: Course,
    settings: Settings,
    out: Path,
    *,
    people: Mapping[str, str],
    fresh: bool = False,
    is_whole: bool | None = None,
    part: str | None = None,
) -> Prepared:
    """Match submissions with previous results, and plan the run. No file is changed.

    The arguments are those of `grade_class`.

    Raises:
        UsageError: the folder belongs to another course.
    """
    previous = load_previous(out / RESULTS)
    require_same_course(previous, course, out)
    submissions, about_files = named_as_before(submissions, previous)
    submissions = _requested(submissions, course, part)
    names = {each.name for each in submissions}
    absent = [result for name, result in previous.results.items() if name not in names]
    says_whole = len(submissions) > 1 if is_whole is None else is_whole
    common = common_provenance(course, settings)
    plans = [plan(each, previous, common, fresh=fresh) for each in submissions]
    return Prepared(
        plans,
        absent,
        previous,
        read_gradebook(out / GRADEBOOK),
        common,
        people,
        says_whole,
        [*about_files, *about_replaced(plans, previous)],
    )


def _ungraded(problems: Sequence[Problem], book: GradebookFolder) -> dict[str, ProblemResult]:
    """Map the id of each problem to a placeholder for its result, in which all tests failed.

    The placeholders are used to check the instructor's corrections before grading. If no correction
    names a test of a problem, its placeholder contains a single test. The tests are loaded only if
    a correction names a case of a parametrized test, because loading takes seconds.
    """
    lines = [line for line in read_lines(book.folder, Correction) if line.test]
    results = {}
    for problem in problems:
        results[problem.id] = result = problem.result()
        named = {line.test for line in lines if line.concerns(problem.id)}
        if any("[" in name for name in named):
            function = f"{__name__}:points_of_cases"
            points = call_apart(function, Isolation.PROCESS, problem)
        else:
            points = _points_of_tests(problem) if named else {"all": problem.entry.points}
        result.tests = [
            TestResult(id, id, False, most, Status.FAILED) for id, most in points.items()
        ]
    return results


def points_of_cases(_: object, problem: Problem) -> dict[str, float]:
    """Map test ids to points. Each case of a parametrized test has a separate id.

    The function loads the tests, so it is called in a separate process.
    """
    from grader.run.collecting import collect

    return {test.id: test.points for test in collect([problem], problem.folder.parents[1])}


def _points_of_tests(problem: Problem) -> dict[str, float]:
    """Map the name of each test of a problem to its points, without running the test file.

    Raises:
        CourseError: the file is not valid Python.
    """
    try:
        statements = ast.parse(problem.test_file.read_bytes()).body
    except SyntaxError as error:
        raise CourseError(f"{problem.test_file} can't be read as Python: {error}") from None
    tests = [each for each in statements if isinstance(each, ast.FunctionDef)]
    marks = {test.name: [*map(_points, test.decorator_list)] for test in tests}
    most = problem.entry.points
    return {
        name: next(filter(None, points), most)
        for name, points in marks.items()
        if name.startswith("test")
    }


def _points(decorator: ast.expr) -> float:
    """Return the argument of the decorator `@pytest.mark.points`; 0 for any other decorator."""
    match decorator:
        case ast.Call(func=ast.Attribute(attr="points"), args=[ast.Constant(float() | int() as n)]):
            return n
    return 0


def _requested(
    submissions: Iterable[Submission], course: Course, part: str | None
) -> list[Submission]:
    """Return the submissions, with only the problems of `part` if it is given.

    Optional problems that were not submitted are left out.
    """
    asked = {problem.id for problem in course.of_part(part)}
    optional = [problem for problem in course.problems() if problem.part.optional]
    chosen = [each.only(id for id in each.files if id in asked) for each in submissions]
    return [without_skipped(each, optional) for each in chosen]


def _about_roster(
    results: Iterable[SubmissionResult], matched: Matched, book: GradebookFolder
) -> list[str]:
    """Return sentences about ambiguous roster entries and students who are not on the roster."""
    if not book.roster.entries:
        return []
    unclear = ", ".join(entry.shown for entry in matched.unclear)
    strangers = ", ".join(sorted(r.shown_name for r in results if r.who in matched.strangers))
    remarks = [f"Roster entries that may match several submissions: {unclear}."] if unclear else []
    return [*remarks, *([f"Not on the roster: {strangers}."] if strangers else [])]
