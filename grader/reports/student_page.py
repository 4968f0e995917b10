"""A page about one student for the instructor alone: all that tests said, beside the code."""

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
    """A test that was not passed, or all of a problem that ended alike.

    Attributes:
        test: the first of its cases that failed.
        failed: the cases that failed, in order.
        count: how many cases there are.
        points: what they gave.
        max: what they are worth.
        place: where in the code to look.
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
    """A known mistake that the answers show.

    Attributes:
        row: the mistake and who in the class made it.
        others: who else made it, as many as are named.
        more: how many others there are.
    """

    row: MistakeRow
    others: Sequence[Person]
    more: int


@dataclass(frozen=True)
class FailureView:
    """A test that was not passed, and the others that fail by the same mistake.

    Attributes:
        mistake: the known mistake; None if none is known.
        first: the test.
        more: the others.
    """

    mistake: MistakeView | None
    first: TestView
    more: Sequence[TestView]


@dataclass(frozen=True)
class ProblemView:
    """One problem of one student.

    Attributes:
        result: what was found.
        changes: what changed the marks after the tests.
        mistakes: the known mistakes that no single test shows.
        alike: whether all tests ended alike; then `failed` has one entry for all.
        failed: the tests that were not passed, one for each mistake.
        passed: the titles of those that were.
        source: the file; None when it isn't kept.
        same: who else handed in the same file, as many as are named.
        same_more: how many others did.
        own: which file of the course's it is; empty if it is none.
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
    own: str = ""


def student_pages(
    results: Sequence[SubmissionResult],
    sources: Sources,
    identical: Sequence[Identical] = (),
    date: str = "",
) -> Iterator[tuple[str, str]]:
    """Yield the name of each submission and the text of the page about it, in the order of names.

    Args:
        results: of the whole class.
        sources: the files as they were graded.
        identical: who handed in the same files.
        date: of the run.
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
    """What a page needs to know of the others.

    Attributes:
        made: the mistakes that were made, by problem and names.
        identical: who handed in the same, by problem and submission.
        sources: the files as they were graded.
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
    told = [each.mistake for each in failed]
    return ProblemView(
        problem,
        adjustment_lines(problem),
        [mistake for mistake in made if mistake not in told],
        alike,
        failed,
        [cases[0].title for cases in tests if all(t.status is Status.PASSED for t in cases)],
        view,
        *_others(same.people if same else (), result),
        same.own if same else "",
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
    """Return tests that were not passed, with those together that one known mistake explains."""
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
    """Return the others among people, as many as are named, and how many more there are."""
    others = [person for person in people if person.submission != result.submission]
    return others[:_OTHERS], max(0, len(others) - _OTHERS)
