"""The marks to export: of one problem, or their sum."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from grader.errors import UsageError
from grader.result import Status, SubmissionResult, shown, total


@dataclass(frozen=True)
class Mark:
    """Points and their maximum."""

    points: float
    max: float


@dataclass(frozen=True)
class Marks:
    """The marks of a class.

    Attributes:
        what: their title, such as `03-some-name`.
        most: the maximum.
        of: each mark by the name of the submission.
        results: all results by the name of the submission.
        messages: about missing marks and marks that count 0.
    """

    what: str
    most: float
    of: Mapping[str, Mark]
    results: Mapping[str, SubmissionResult]
    messages: Sequence[str]


def marks_of(results: Iterable[SubmissionResult], problem: str) -> Marks:
    """Return the marks of a problem, or the sum of all required problems.

    Args:
        results: the adjusted results.
        problem: an id; empty for the sum of all graded problems, where a missing one counts 0.

    Raises:
        UsageError: nobody has been graded in the problem.
    """
    results = sorted((r.without_skipped() for r in results), key=lambda r: r.submission)
    worth = _worth([r for r in results if r.status != Status.INTERNAL], problem)
    if problem and not worth:
        raise UsageError(f"No student in these reports has been graded in {problem}.")
    marks: dict[str, Mark] = {}
    remarks: defaultdict[str, list[str]] = defaultdict(list)
    for result in results:
        own = {each.id: each for each in result.problems if each.id in worth}
        missing = [] if result.status == Status.INTERNAL else [id for id in worth if id not in own]
        for id in missing:
            remarks[f"Not graded in {id}{'' if problem else ', which counts 0'}"].append(
                called(result)
            )
        mark = Mark(
            total(each.points for each in own.values()),
            total(own[id].max if id in own else worth[id] for id in worth),
        )
        if result.status == Status.INTERNAL:
            remarks["The grader failed, so there is no mark"].append(called(result))
        elif not mark.max:
            remarks[f"{problem or 'total'} was left out, so there is no mark"].append(
                called(result)
            )
        elif not (problem and missing):
            marks[result.submission] = mark
    return Marks(
        problem or "total",
        total(worth.values()),
        marks,
        {result.submission: result for result in results},
        [f"{remark}: {', '.join(names)}." for remark, names in remarks.items()],
    )


def _worth(results: Iterable[SubmissionResult], problem: str) -> dict[str, float]:
    """Return the maximum of each problem that counts."""
    worth: dict[str, float] = {}
    for each in (each for result in results for each in result.problems):
        if each.id == problem or not (problem or each.optional):
            worth[each.id] = max(worth.get(each.id, 0.0), each.max)
    return dict(sorted(worth.items()))


def called(result: SubmissionResult) -> str:
    """Return the name of a student, and the identity if it differs."""
    name = result.shown_name
    return f"{name} ({result.identity})" if result.identity not in ("", name) else name


def written(points: float, *, comma: bool) -> str:
    """Return points as text, in hundredths, with a decimal point or comma."""
    text = shown(points)
    return text.replace(".", ",") if comma else text
