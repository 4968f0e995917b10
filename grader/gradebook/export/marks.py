"""The marks to export: of one problem, or their sum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Decimal

from grader.errors import UsageError
from grader.result import ProblemResult, Status, SubmissionResult, shown, total


@dataclass(frozen=True)
class Mark:
    """Points and their maximum."""

    points: float
    max: float

    def out_of(self, most: float) -> float:
        """Return the points on another scale, rounded to hundredths."""
        exact = Decimal(str(self.points)) * Decimal(str(most)) / Decimal(str(self.max))
        return float(exact.quantize(Decimal("0.01"), ROUND_HALF_UP))


@dataclass
class Marks:
    """The marks of a class.

    Attributes:
        what: their title, such as `03-some-name`.
        most: the maximum.
        of: each mark by the name of the submission.
        results: all results by the name of the submission.
        told: messages about missing marks and marks that count 0.
        worth: the maximum of each problem of a sum; empty for a single problem.
    """

    what: str
    most: float = 0.0
    of: dict[str, Mark] = field(default_factory=dict)
    results: dict[str, SubmissionResult] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    worth: dict[str, float] = field(default_factory=dict)

    def together(self, names: Iterable[str]) -> Mark | None:
        """Return the sum over several submissions of one student.

        It is None if two of them contain the same problem, or the marks are of a single problem.
        """
        results = [self.results[name] for name in names]
        problems = [p for result in results for p in result.problems if p.id in self.worth]
        if not problems or len({p.id for p in problems}) < len(problems):
            return None
        return _mark(replace(results[0], problems=problems), "", self.worth)


def marks_of(results: Iterable[SubmissionResult], problem: str, part: str = "") -> Marks:
    """Return the marks of a problem, or the sum of all required problems, or of a part.

    Args:
        results: the adjusted results.
        problem: an id; empty for the sum of all graded problems, where a missing one counts 0.
        part: the id of the only part to sum; empty for all required parts. Students who skipped an
            optional part have no mark in it.
    """
    results = sorted((r.without_skipped() for r in results), key=lambda r: r.submission)
    what = problem or (f"part_{part}_total" if part else "total")
    marks = Marks(what, results={r.submission: r for r in results})
    failed = [r for r in results if r.status == Status.INTERNAL]
    valid = [r for r in results if r.status != Status.INTERNAL]
    asked = [p for result in valid for p in result.problems if _is_asked(p, problem, part)]
    worth: dict[str, float] = {}
    for each in asked:
        worth[each.id] = max(worth.get(each.id, 0.0), each.max)
    if not worth and (problem or part):
        what = problem or f"part {part}"
        raise UsageError(f"No student in these reports has been graded in {what}.")
    if asked and asked[0].optional:
        valid = [r for r in valid if asked[0].part in r.optional]
    marks.worth = {} if problem else worth
    marks.most = worth[problem] if problem else total(worth.values())
    _tell(marks, failed, "The grader failed, so there is no mark")
    for id in [problem] if problem else sorted(worth):
        missing = [r for r in valid if id not in {p.id for p in r.problems}]
        counts = f"Not graded in {id}" + ("" if problem else ", which counts 0")
        _tell(marks, missing, counts)
    for result in valid:
        if mark := _mark(result, problem, worth):
            marks.of[result.submission] = mark
    left_out = [r for r in valid if (m := marks.of.get(r.submission)) and not m.max]
    _tell(marks, left_out, f"{marks.what} was left out, so there is no mark")
    for result in left_out:
        del marks.of[result.submission]
    return marks


def _is_asked(found: ProblemResult, problem: str, part: str) -> bool:
    if problem:
        return found.id == problem
    return found.part == part if part else not found.optional


def _mark(result: SubmissionResult, problem: str, worth: dict[str, float]) -> Mark | None:
    own = {p.id: p for p in result.problems}
    if problem:
        return Mark(own[problem].points, own[problem].max) if problem in own else None
    most = total(own[id].max if id in own else most for id, most in worth.items())
    return Mark(total(own[id].points for id in worth if id in own), most)


def _tell(marks: Marks, results: list[SubmissionResult], what: str) -> None:
    if results:
        marks.told.append(f"{what}: {', '.join(map(called, results))}.")


def called(result: SubmissionResult) -> str:
    """Return the name of a student, and the identity if it differs."""
    name = result.shown_name
    return f"{name} ({result.identity})" if result.identity not in ("", name) else name


def written(points: float, *, comma: bool) -> str:
    """Return points as text, in hundredths, with a decimal point or comma."""
    text = shown(points)
    return text.replace(".", ",") if comma else text
