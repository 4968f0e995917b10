"""Write the instructor's page about each student, with all failed tests and the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from grader.reports.display_names import Person, by_name, people
from grader.reports.identical import Identical
from grader.reports.mistake_table import MistakeRow, mistakes_made, mistakes_named
from grader.reports.page import render
from grader.reports.source_view import SourcePlace, SourceView
from grader.reports.sources import Sources
from grader.reports.wording import adjustment_lines, for_instructors, total_lines
from grader.result import ProblemResult, Status, SubmissionResult, TestResult, total

_OTHERS = 12


@dataclass(frozen=True)
class TestView:
    """A failed test, or all tests of a problem if they failed with the same status and message.

    Attributes:
        test: the first parametrized case that failed.
        failed: all cases that failed, in order.
        count: the number of cases.
        points: the points of all cases.
        max: the maximum points of all cases.
        place: the relevant line of the student's file; None if it is unknown.
    """

    __test__ = False

    test: TestResult
    failed: list[TestResult]
    count: int
    points: float
    max: float
    place: SourcePlace | None


@dataclass(frozen=True)
class MistakeView:
    """A known mistake in a submission.

    Attributes:
        row: the mistake and all students who made it.
        others: some of the other students who made it.
        more: the number of the students who are not listed in `others`.
    """

    row: MistakeRow
    others: Sequence[Person]
    more: int


@dataclass(frozen=True)
class FailureView:
    """Failed tests that are explained by the same mistake.

    Attributes:
        mistake: the known mistake; None if no mistake is known.
        first: the first failed test.
        more: the other failed tests.
    """

    mistake: MistakeView | None
    first: TestView
    more: Sequence[TestView]


@dataclass(frozen=True)
class ProblemView:
    """The result of one student in one problem.

    Attributes:
        result: the result.
        changes: the adjustments of the marks.
        mistakes: the known mistakes that explain no failed test.
        alike: whether all tests failed with the same status and message. If so, `failed` has one
            entry.
        failed: the failed tests, grouped by mistake.
        passed: the titles of the passed tests.
        source: the student's file; None if it was not saved.
        same: some of the other students with an identical file.
        same_more: the number of the students with an identical file who are not in `same`.
        course_file: the name of the identical file of the course; empty if there is none.
    """

    result: ProblemResult
    changes: list[str]
    mistakes: list[MistakeView]
    alike: bool
    failed: list[FailureView]
    passed: list[str]
    source: SourceView | None
    same: Sequence[Person]
    same_more: int
    course_file: str = ""


def student_pages(
    results: Sequence[SubmissionResult],
    sources: Sources,
    identical: Sequence[Identical] = (),
    date: str = "",
) -> Iterator[tuple[str, str]]:
    """Yield the name of each submission and the HTML text of its page, sorted by name.

    Args:
        results: the results of the whole class.
        sources: the graded files.
        identical: the groups of identical files.
        date: the date of the run.
    """
    results, who = by_name(results), people(results)
    class_ = _Class(
        {(row.problem, row.names): row for row in mistakes_made(results)},
        {(each.problem, one.submission): each for each in identical for one in each.people},
        sources,
    )
    around = [None, *results, None]
    for before, result, after in zip(around, results, around[2:], strict=False):
        problems = [_problem(result, each, class_) for each in result.problems]
        yield (
            result.submission,
            render(
                "student.html.j2",
                result=result,
                totals=total_lines(result),
                person=who[result.submission],
                before=before and who[before.submission],
                after=after and who[after.submission],
                contents=problems,
                problems=sorted(problems, key=lambda each: each.result.order),
                date=date,
                isolation=for_instructors(result),
            ),
        )


@dataclass(frozen=True)
class _Class:
    """Data about the whole class.

    Attributes:
        made: maps (problem id, names of a mistake) to the mistake.
        identical: maps (problem id, name of a submission) to the group of identical files.
        sources: the graded files.
    """

    made: Mapping[tuple[str, str], MistakeRow]
    identical: Mapping[tuple[str, str], Identical]
    sources: Sources


def _problem(result: SubmissionResult, problem: ProblemResult, class_: _Class) -> ProblemView:
    source = class_.sources.read(problem.sha256)
    view = None if source is None else SourceView.of(source)
    tests = problem.with_cases
    same = class_.identical.get((problem.id, result.submission))
    alike = problem.ended_alike and not problem.passed
    made = [_mistake(class_.made[problem.id, n], result) for n, _ in mistakes_named(problem)]
    failed = _by_mistake(_failed([problem.tests] if alike else tests, view), made)
    shown = [each.mistake for each in failed]
    return ProblemView(
        problem,
        adjustment_lines(problem),
        [mistake for mistake in made if mistake not in shown],
        alike,
        failed,
        [cases[0].title for cases in tests if all(t.status is Status.PASSED for t in cases)],
        view,
        *_others(same.people if same else (), result),
        same.course_file if same else "",
    )


def _failed(tests: list[list[TestResult]], source: SourceView | None) -> Iterator[TestView]:
    for cases in tests:
        failed = [test for test in cases if test.status is not Status.PASSED]
        if failed:
            first = failed[0]
            place = source.place_of(first.message, first.title, first.id) if source else None
            points, most = total(t.points for t in cases), total(t.max for t in cases)
            yield TestView(first, failed, len(cases), points, most, place)


def _by_mistake(failed: Iterable[TestView], made: Sequence[MistakeView]) -> list[FailureView]:
    """Group failed tests by the known mistake that explains them."""
    groups: dict[str, tuple[MistakeView | None, list[TestView]]] = {}
    for view in failed:
        shown = {*view.test.diagnosis}
        mistake = next((each for each in made if shown & {*each.row.names.split(" or ")}), None)
        key = mistake.row.names if mistake else f"test {view.test.id}"
        groups.setdefault(key, (mistake, []))[1].append(view)
    return [FailureView(mistake, first, more) for mistake, (first, *more) in groups.values()]


def _mistake(row: MistakeRow, result: SubmissionResult) -> MistakeView:
    return MistakeView(row, *_others(row.people, result))


def _others(people: Sequence[Person], result: SubmissionResult) -> tuple[Sequence[Person], int]:
    """Return some of the other students, and the number of those who are not returned."""
    others = [person for person in people if person.submission != result.submission]
    return others[:_OTHERS], max(0, len(others) - _OTHERS)
