"""Write the class page with frequent mistakes, a grid of students and problems, and all tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from typing import NamedTuple

from grader.reports.display_names import Person, by_name, people
from grader.reports.identical import Identical
from grader.reports.mistake_table import MistakeRow, mistakes_made
from grader.reports.news import News
from grader.reports.page import render
from grader.reports.remarks import class_remarks
from grader.reports.wording import NOT_CONFINED, not_confined
from grader.result import ProblemResult, Status, SubmissionResult, shown, total

_AT_A_GLANCE = 3
_BINS = 10


@dataclass
class TestRow:
    """The results of the class in one test. Only students whose code runs are counted.

    Attributes:
        problem: the problem's id.
        title: the test's sentence.
        hidden: whether the test is hidden from students.
        tried: the number of students whose code ran and could be judged.
        failed: the students who failed at least one of the test's parametrized cases.
    """

    __test__ = False

    problem: str
    title: str
    hidden: bool
    tried: int = 0
    failed: list[Person] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of students who passed, among those whose code ran and could be judged."""
        return 1 - len(self.failed) / self.tried if self.tried else 0.0


@dataclass
class ProblemRow:
    """The results of the class in one problem.

    Attributes:
        id: the problem's id.
        max: the maximum points. If some points that are given by hand are missing, a submission
            has a smaller maximum, so `max` is the largest maximum of all submissions.
        points: the points of each submission.
        shares: the points of each submission, divided by its maximum.
        full: the number of submissions with full points.
        untried: the number of students who did not attempt the problem.
    """

    id: str
    max: float = 0.0
    points: list[float] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    full: int = 0
    untried: int = 0

    @property
    def tried(self) -> int:
        """The number of students who attempted the problem."""
        return len(self.points) - self.untried

    @property
    def mean(self) -> float:
        """The mean of the points."""
        return mean(self.points) if self.points else 0.0

    @property
    def share(self) -> float:
        """The mean of the shares."""
        return mean(self.shares) if self.shares else 0.0


class Cell(NamedTuple):
    """A cell of the grid, for one student and one problem.

    Attributes:
        text: the points, or "stub" or "-" if the problem was not attempted.
        shade: a digit from 0 to 5, where 5 means all points; empty if nothing was graded.
        title: a longer text for the tooltip.
    """

    text: str = ""
    shade: str = ""
    title: str = ""


class NamelessMistake(NamedTuple):
    """Wrong answers that several submissions share and that match no known mistake.

    Attributes:
        problem: the problem's id.
        owners: the functions and classes with wrong answers.
        failed: the titles of the tests that all these submissions fail.
        submissions: the names of the submissions with these answers.
    """

    problem: str
    owners: Sequence[str]
    failed: Sequence[str]
    submissions: Sequence[str]


@dataclass(frozen=True)
class ClassFacts:
    """Data for the class page in addition to the results.

    Attributes:
        title: the title of the course.
        date: the date of the run.
        news: the changes since the last run.
        sections: maps the name of each submission to the student's section.
        absent: students on the roster without a submission.
        nameless: shared wrong answers that match no known mistake.
    """

    title: str = "The class"
    date: str = ""
    news: News = field(default_factory=News)
    sections: Mapping[str, str] = field(default_factory=dict)
    absent: Sequence[str] = ()
    nameless: Sequence[NamelessMistake] = ()


def dashboard(
    results: Sequence[SubmissionResult],
    problems: Sequence[str],
    identical: Sequence[Identical] = (),
    optional: Mapping[str, Sequence[str]] | None = None,
    facts: ClassFacts | None = None,
) -> str:
    """Return the class page as HTML.

    Args:
        results: the results of the whole class.
        problems: the ids of the required problems.
        identical: the groups of identical files.
        optional: maps the id of each optional part on the page to the ids of its problems.
        facts: data in addition to the results.
    """
    facts = facts or ClassFacts()
    results, who, optional = by_name(results), people(results), optional or {}
    results.sort(key=lambda result: result.points)  # students with few points come first
    valid = [result for result in results if result.status != Status.INTERNAL]
    tests = _tests(valid, who)
    rows = _problems(valid, problems)
    rows_of_part = {id: _problems(valid, ids) for id, ids in optional.items()}
    tried = {row.id: row.tried for of_part in (rows, *rows_of_part.values()) for row in of_part}
    mistakes = sorted(mistakes_made(valid), key=lambda made: _rank(made, problems, tried))
    return render(
        "dashboard.html.j2",
        results=results,
        who=who,
        problems=problems,
        optional=optional,
        facts=facts,
        cells=_cells,
        shade=_shade,
        tried=tried,
        remarks=class_remarks(results),
        nameless=[(each, [who[name] for name in each.submissions]) for each in facts.nameless],
        mistakes=mistakes,
        frequent=[each for each in mistakes if len(each.people) > 1],
        identical=identical,
        tests=tests,
        weakest=sorted((t for t in tests if t.failed), key=lambda t: (t.share, -len(t.failed))),
        at_a_glance=_AT_A_GLANCE,
        problem_rows=rows,
        rows_of_part=rows_of_part,
        tried_part=_tried(valid),
        not_confined=[who[name] for name in not_confined(results)],
        warning=NOT_CONFINED,
        **_numbers(results, valid),
    )


def _numbers(
    results: Sequence[SubmissionResult], valid: Sequence[SubmissionResult]
) -> dict[str, object]:
    """Map the names of variables in the template to the counts and means of the class."""
    marked = [result for result in valid if result.counted]
    points, most = [result.points for result in marked], max((r.max for r in marked), default=0)
    return {
        "faults": len(results) - len(valid),
        "untried": sum(result.status == "not_attempted" for result in marked),
        "mean": mean(points) if points else 0.0,
        "median": median(points) if points else 0.0,
        "most": most,
        "bins": _distribution(_shares(marked)),
        "levels": sorted({result.isolation for result in results if result.isolation}),
        "seeds": sorted({result.seed for result in valid}),
    }


def _tried(valid: Iterable[SubmissionResult]) -> dict[str, tuple[int, float]]:
    """Map the id of each optional part to its number of students and their mean points."""
    points: dict[str, list[float]] = {}
    for result in valid:
        for id, part in result.optional.items():
            points.setdefault(id, []).append(part.points)
    return {id: (len(each), mean(each)) for id, each in points.items()}


def _rank(
    made: MistakeRow, problems: Sequence[str], tried: Mapping[str, int]
) -> tuple[bool, float, int]:
    """Return the sort key of a mistake.

    Mistakes in required problems come first. Then mistakes that a larger share of students made
    come first.
    """
    share = len(made.people) / (tried.get(made.problem) or 1)
    return made.problem not in problems, -share, -len(made.people)


def _cells(result: SubmissionResult, problems: Sequence[str]) -> Iterator[Cell]:
    """Yield the cells of a row of the grid."""
    by_id = {problem.id: problem for problem in result.problems}
    yield from (_cell(by_id[id]) if id in by_id else Cell() for id in problems)


def _cell(problem: ProblemResult) -> Cell:
    points, share = shown(problem.points), problem.points / problem.max if problem.max else 0.0
    title = f"{points} of {shown(problem.max)} points"
    if problem.untouched and not problem.points:
        text, title = ("stub", "unchanged stub") if problem.is_stub else ("-", "no file")
        return Cell(text, "0", title)
    return Cell(points, _shade(share), title)


def _shade(share: float) -> str:
    return str(max(0, min(5, int(share * 5))))


def _tests(results: Sequence[SubmissionResult], who: Mapping[str, Person]) -> list[TestRow]:
    rows: dict[tuple[str, str], TestRow] = {}
    for result in results:
        for problem in result.problems:
            is_running = _ran(problem)
            for cases in problem.with_cases:
                key = problem.id, cases[0].name
                row = rows.setdefault(key, TestRow(problem.id, cases[0].title, cases[0].hidden))
                if is_running and any(case.is_judged for case in cases):
                    row.tried += 1
                    if any(test.status is not Status.PASSED for test in cases):
                        row.failed.append(who[result.submission])
    return list(rows.values())


def _ran(problem: ProblemResult) -> bool:
    """Return whether a problem's code ran.

    It did not run if no function was attempted, or if all judged tests failed in the same way.
    """
    return not problem.untouched and (problem.passed or not problem.ended_alike)


def _problems(results: Sequence[SubmissionResult], ids: Sequence[str]) -> list[ProblemRow]:
    rows = {id: ProblemRow(id) for id in ids}
    for result in results:
        for problem in (p for p in result.problems if p.id in rows):
            row = rows[problem.id]
            row.max = max(row.max, problem.max)
            row.points.append(problem.points)
            row.shares += [problem.points / problem.max] if problem.max else []
            row.full += problem.points >= problem.max > 0
            row.untried += problem.untouched
    return list(rows.values())


def _shares(results: Sequence[SubmissionResult]) -> Iterator[float]:
    """Yield each submission's share of the required points. A missing problem counts 0 points."""
    worth: dict[str, float] = {}
    for problem in (p for result in results for p in result.counted):
        worth[problem.id] = max(worth.get(problem.id, 0.0), problem.max)
    for result in results:
        most = total({**worth, **{p.id: p.max for p in result.counted}}.values())
        yield result.points / most if most else 0.0


def _distribution(shares: Iterable[float]) -> list[tuple[str, int]]:
    """Count the submissions with 0-10 % of the points, with 10-20 %, and so on."""
    counts = Counter(min(int(share * _BINS), _BINS - 1) for share in shares)
    width = 100 // _BINS
    return [(f"{n * width}-{(n + 1) * width} %", counts[n]) for n in range(_BINS)]
