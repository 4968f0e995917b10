"""The page of the term: how hard tests and mistakes are, what hidden tests cost, week by week.

A week is a problem. What a number rests on too few people for is not shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import StatisticsError, correlation, mean

from grader.reports.display_names import Person, by_name, people
from grader.reports.mistake_table import mistakes_named
from grader.reports.page import render
from grader.result import ProblemResult, Status, SubmissionResult, total

TERM_PAGE = "term.html"

ENOUGH = 8
"""A correlation of fewer people says nothing."""

_LOOKS = " looks as if "


@dataclass(frozen=True)
class Week:
    """How a class did in one problem; of those whose code was there and ran.

    Attributes:
        problem: the problem's id.
        tried: how many they are.
        mistaken: how many of them made a mistake that has a name.
        share: the mean share of the points that tests gave.
        visible: the same of visible tests alone; None where there are none.
        hidden: the same of hidden tests; None where there are none.
        solved: how many passed all visible tests.
        surprised: how many of these failed a hidden one.
        lost: the points that hidden tests cost these in the mean.
        sections: the mean share of each section.
    """

    problem: str
    tried: int
    mistaken: int
    share: float
    visible: float | None
    hidden: float | None
    solved: int
    surprised: int
    lost: float
    sections: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Recurring:
    """A mistake over the term.

    Attributes:
        names: its names in the catalogue.
        text: what is wrong.
        made: by problem, how many made it.
        again: who made it in more than one problem.
        effect: how much lower the share of all points is of those who made it; None where too few
            people did, or did not.
    """

    names: str
    text: str
    made: Mapping[str, int]
    again: Sequence[Person]
    effect: float | None

    @property
    def people(self) -> int:
        """How often it was made."""
        return sum(self.made.values())


@dataclass(frozen=True)
class TestStatistics:
    """How a test sorts a class.

    Attributes:
        problem: the problem's id.
        title: the test's sentence.
        hidden: whether students can't see it.
        tried: how many tried the problem with code that runs.
        passed: the share of them that passed all its cases.
        discrimination: how passing goes with all other points of the term, from -1 to 1; None where
            everybody did the same, or too few tried.
    """

    __test__ = False

    problem: str
    title: str
    hidden: bool
    tried: int
    passed: float
    discrimination: float | None


def term(
    results: Iterable[SubmissionResult],
    problems: Sequence[str],
    sections: Mapping[str, str] | None = None,
) -> str:
    """Return the page's text.

    Args:
        results: of the whole class.
        problems: the ids of those that somebody has a result for.
        sections: of everybody, by the name of the submission.
    """
    valid = [result for result in by_name(results) if result.status != Status.INTERNAL]
    weeks = [week for id in problems if (week := _week(id, valid, sections or {}))]
    return render(
        "term.html.j2",
        weeks=weeks,
        sections=sorted({name for week in weeks for name in week.sections}),
        mistakes=recurring(valid),
        tests=how_tests_sort(valid),
        enough=ENOUGH,
    )


def ran(problem: ProblemResult) -> bool:
    """Tell whether the code was there and ran: if not, all tests end alike and say nothing."""
    return not problem.untouched and (problem.passed or not problem.ended_alike)


# Week by week


def _week(id: str, results: Sequence[SubmissionResult], sections: Mapping[str, str]) -> Week | None:
    tried = {r.submission: p for r in results for p in r.problems if p.id == id and ran(p)}
    if not tried:
        return None
    halves = [(p, _share(p, hidden=False), _share(p, hidden=True)) for p in tried.values()]
    solved = [p for p, share, _ in halves if share == 1]
    lost = [points for p in solved if (points := _lost_to_hidden(p))]
    visible = [share for _, share, _ in halves if share is not None]
    hidden = [share for _, _, share in halves if share is not None]
    of_section: defaultdict[str, list[float]] = defaultdict(list)
    for name, problem in tried.items():
        if sections.get(name):
            of_section[sections[name]].append(_share_of(problem))
    return Week(
        id,
        len(tried),
        sum(bool(mistakes_named(problem)) for problem in tried.values()),
        mean(_share_of(problem) for problem in tried.values()),
        mean(visible) if visible else None,
        mean(hidden) if hidden else None,
        len(solved),
        len(lost),
        mean(lost) if lost else 0.0,
        {section: mean(shares) for section, shares in of_section.items()},
    )


def _share_of(problem: ProblemResult) -> float:
    most = total(test.max for test in problem.tests)
    return problem.earned / most if most else 0.0


def _share(problem: ProblemResult, *, hidden: bool) -> float | None:
    """Return the share of the points of one half of the tests; None where that gives none."""
    tests = [test for test in problem.tests if test.hidden is hidden]
    most = total(test.max for test in tests)
    return total(test.points for test in tests) / most if most else None


def _lost_to_hidden(problem: ProblemResult) -> float:
    return total(test.max - test.points for test in problem.tests if test.hidden)


# Mistakes over the term


def recurring(results: Sequence[SubmissionResult]) -> list[Recurring]:
    """Return the mistakes of a term: those of most problems first, then those of most people."""
    who = people(results)
    made: defaultdict[str, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    for result in results:
        for problem in result.problems:
            for names, text in mistakes_named(problem):
                made[names][problem.id][result.submission] = text
    shares = {r.submission: r.points / r.max for r in results if r.max}
    found = []
    for names, by_problem in made.items():
        submissions = [name for own in by_problem.values() for name in own]
        again = [who[name] for name in dict.fromkeys(submissions) if submissions.count(name) > 1]
        counts = {id: len(own) for id, own in sorted(by_problem.items())}
        text = next(iter([*by_problem.values()][-1].values()))
        found.append(Recurring(names, _what(text), counts, again, _effect({*submissions}, shares)))
    return sorted(found, key=lambda each: (-len(each.made), -each.people, each.names))


def _what(text: str) -> str:
    """Return what is wrong, without where it is and what to look at."""
    first = text.partition(_LOOKS)[2] or text
    return first.splitlines()[0].partition(". ")[0].rstrip(".")


def _effect(makers: set[str], shares: Mapping[str, float]) -> float | None:
    """Return how much less of all points those have who made a mistake."""
    own = [share for name, share in shares.items() if name in makers]
    others = [share for name, share in shares.items() if name not in makers]
    if len(own) < 2 or len(others) < 2 or len(own) + len(others) < ENOUGH:
        return None
    return mean(own) - mean(others)


# Tests


def how_tests_sort(results: Sequence[SubmissionResult]) -> list[TestStatistics]:
    """Return how each test sorts the class, in the order of the course."""
    passed: defaultdict[tuple[str, str], dict[str, bool]] = defaultdict(dict)
    worth: defaultdict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    titles: dict[tuple[str, str], tuple[str, bool]] = {}
    for result in results:
        for problem in filter(ran, result.problems):
            for cases in problem.with_cases:
                key = problem.id, cases[0].name
                titles.setdefault(key, (cases[0].title, cases[0].hidden))
                if not any(case.is_judged for case in cases):
                    continue
                passed[key][result.submission] = all(c.status is Status.PASSED for c in cases)
                worth[key][result.submission] = total(case.points for case in cases)
    every = {r.submission: total(p.earned for p in r.problems) for r in results}
    return [
        TestStatistics(
            problem,
            title,
            hidden,
            len(own := passed[problem, name]),
            sum(own.values()) / len(own) if own else 0.0,
            _discrimination(own, {one: every[one] - worth[problem, name][one] for one in own}),
        )
        for (problem, name), (title, hidden) in titles.items()
    ]


def _discrimination(passed: Mapping[str, bool], rest: Mapping[str, float]) -> float | None:
    """Return the correlation of passing with all points but the test's own."""
    if len(passed) < ENOUGH:
        return None
    try:
        return correlation([float(passed[n]) for n in passed], [rest[n] for n in passed])
    except StatisticsError:  # everybody passes, or nobody, or all have as many points
        return None
