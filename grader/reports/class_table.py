"""Show the results of a class in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.markup import escape
from rich.table import Table

from grader.reports.display_names import by_name, people
from grader.reports.news import News
from grader.reports.remarks import SharedRemark, class_remarks
from grader.reports.wording import NOT_CONFINED, not_confined
from grader.result import Status, SubmissionResult, shown
from grader.text import line, some

_MOST_NAMES = 5
"""The maximum number of names in a shared remark. The class page lists all names."""


def class_table(results: Iterable[SubmissionResult], problems: Sequence[str]) -> Table:
    """Return a table with a row for each submission and the points of the required problems.

    Args:
        results: the results of the whole class.
        problems: the ids of the required problems.
    """
    table = _table(problems, "total")
    for name, result in _named(results):
        points = {problem.id: shown(problem.points) for problem in result.problems}
        internal = result.status == Status.INTERNAL
        total = "-" if internal else f"{shown(result.points)} / {shown(result.max)}"
        table.add_row(name, *(points.get(id, "-") for id in problems), total)
    return table


def optional_table(
    results: Iterable[SubmissionResult], part: str, problems: Sequence[str]
) -> Table:
    """Return a table with a row for each student who attempted an optional part.

    Args:
        results: the results of the whole class.
        part: the id of the part.
        problems: the ids of the part's problems.
    """
    table = _table(problems, f"part {part}")
    for name, result in _named(results):
        tried = result.optional.get(part)
        if tried:
            points = {problem.id: shown(problem.points) for problem in tried.problems}
            total = f"{shown(tried.points)} / {shown(tried.max)}"
            table.add_row(name, *(points.get(id, "") for id in problems), total)
    return table


def _table(problems: Sequence[str], total: str) -> Table:
    table = Table(pad_edge=False)
    table.add_column("submission", overflow="fold")
    for id in problems:
        table.add_column(id[:2], justify="right")
    table.add_column(total, justify="right", style="bold")
    return table


def _named(results: Iterable[SubmissionResult]) -> list[tuple[str, SubmissionResult]]:
    """Return (name, result) pairs, sorted by name. The names are escaped for rich."""
    results = list(results)
    names = people(results)
    return [(escape(str(names[result.submission])), result) for result in by_name(results)]


def remarks(results: Iterable[SubmissionResult]) -> list[str]:
    """Return the remarks on a class as lines.

    If code ran without a sandbox, the first line is a warning.
    """
    results = list(results)
    names, about_class = people(results), class_remarks(results)
    lines = [_shared(each) for each in about_class.shared]
    lines += [line(f"{names[one]}: {text}") for one, text in about_class.single.items() if text]
    return [NOT_CONFINED, *lines] if not_confined(results) else lines


def _shared(remark: SharedRemark) -> str:
    named = f" ({some(remark.people, _MOST_NAMES)})" if remark.people else ""
    return line(f"{remark.text}{named}")


@dataclass(kw_only=True)
class RunSummary:
    """The messages of a run.

    Attributes:
        graded: the number of submissions that the run grades.
        news: changes since the last run.
        outdated: maps the id of a problem with outdated marks to the names of the changed inputs.
        damaged: maps the name of a submission to the reason why its result file can't be read.
        lost: the names of submissions that have a damaged result file and were not graded again.
        messages: messages about names, replaced files and corrections.
        absent: students on the roster without a submission.
    """

    graded: int
    news: News = field(default_factory=News)
    outdated: Mapping[str, Sequence[str]] = field(default_factory=dict)
    damaged: Mapping[str, str] = field(default_factory=dict)
    lost: Sequence[str] = ()
    messages: Sequence[str] = ()
    absent: Sequence[str] = ()


def about_run(run: RunSummary) -> list[str]:
    """Return the messages of a run as lines."""
    news = run.news
    lines = [*run.messages, *(f"changed: {change}" for change in news.changes)]
    if news.new and not news.is_first:
        lines.append(f"New since the last run: {', '.join(map(str, news.new))}.")
    lines += [
        f"results/{name}.json is damaged and was ignored: {why}."
        for name, why in run.damaged.items()
    ]
    if run.lost:
        lines.append(
            f"Missing in all reports, because these submissions were not graded again: "
            f"{', '.join(run.lost)}."
        )
    if news.missing:
        lines.append(news.missing_line)
    if run.absent:
        lines.append(f"On the roster, without a submission: {', '.join(run.absent)}.")
    for id, names in run.outdated.items():
        lines.append(
            f"{id}: some marks of a previous run are outdated ({', '.join(names)} changed). Grade "
            f"the submissions for this problem again."
        )
    return [line(text) for text in lines]


def about_book(run: RunSummary) -> list[str]:
    """Return the messages about the instructor's files. They are printed last."""
    lines = run.news.about_book
    return (
        ["", "Check these lines in the book:", *(f"- {line(text)}" for text in lines)]
        if lines
        else []
    )
