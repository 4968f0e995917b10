"""Provide sentences about points, adjustments and isolation that all reports use."""

from __future__ import annotations

from collections.abc import Iterable

from grader.result import Adjustment, Isolation, ProblemResult, SubmissionResult, shown

NOT_CONFINED = (
    "NOT IN A SANDBOX: students' code could read and change all files that you can, including "
    "these marks."
)

_FOR_STUDENTS = {
    Isolation.SANDBOX: "Graded in a sandbox.",
    Isolation.PROCESS: (
        "Graded without a sandbox: submitted code could read and change files on the grading "
        "computer, including these marks."
    ),
    None: "",
}


def total_lines(result: SubmissionResult) -> list[str]:
    """Return a line with the points of the required problems, and a line for each optional part."""
    all_that_counts = f"{shown(result.points)} of {shown(result.max)} points"
    optional = [
        f"Part {id}: {shown(part.points)} of {shown(part.max)} points"
        for id, part in result.optional.items()
    ]
    return [all_that_counts, *optional] if result.counted or not optional else optional


def adjustment_lines(problem: ProblemResult) -> list[str]:
    """Return a sentence with the points of the tests, and a sentence for each adjustment.

    Return no sentences if there are no adjustments.
    """
    if not problem.adjustments:
        return []
    gave = f"The tests gave {_points(problem.earned)}."
    return [gave, *(adjustment_line(each) for each in problem.adjustments)]


def adjustment_line(adjustment: Adjustment) -> str:
    """Return a text with the change and the reason of an adjustment."""
    if adjustment.max > 0:
        points, most = shown(adjustment.points), _points(adjustment.max)
        return f"by hand, {points} of {most}: {adjustment.reason}"
    changes = []
    if shown(adjustment.points) not in {"0", "-0"}:
        sign = "+" if adjustment.points > 0 else "-"
        changes.append(f"{sign}{_points(abs(adjustment.points))}")
    if adjustment.max:
        changes.append(f"the maximum is {_points(-adjustment.max)} lower")
    return ": ".join([*([", ".join(changes)] if changes else []), adjustment.reason])


def _points(points: float) -> str:
    return f"{shown(points)} point{'' if shown(points) == '1' else 's'}"


def not_confined(results: Iterable[SubmissionResult]) -> list[str]:
    """Return the names of the submissions whose code ran without a sandbox."""
    return sorted(r.submission for r in results if r.isolation == Isolation.PROCESS)


def for_students(result: SubmissionResult) -> str:
    """Return a sentence for students about the isolation, or "" if no code ran."""
    return _FOR_STUDENTS[result.isolation]


def for_instructors(result: SubmissionResult) -> str:
    """Return the level of isolation for instructors. Add a warning if there was no sandbox."""
    level = result.isolation or ""
    return f"{level}. {NOT_CONFINED}" if level == Isolation.PROCESS else str(level)
