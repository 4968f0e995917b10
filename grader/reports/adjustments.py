"""What changed marks after the tests had given them, in the words of every report."""

from __future__ import annotations

from grader.result import Adjustment, ProblemResult, shown


def told_adjustments(problem: ProblemResult) -> list[str]:
    """Return a sentence for each adjustment, after one on what the tests gave; none without any."""
    if not problem.adjustments:
        return []
    gave = f"The tests gave {_points(problem.earned)}."
    return [gave, *(told_adjustment(each) for each in problem.adjustments)]


def told_adjustment(adjustment: Adjustment) -> str:
    """Return what an adjustment changes, and why. What adds to the maximum was given by hand."""
    if adjustment.max > 0:
        given, most = shown(adjustment.points), _points(adjustment.max)
        return f"by hand, {given} of {most}: {adjustment.reason}"
    changes = []
    if shown(adjustment.points) not in {"0", "-0"}:
        sign = "+" if adjustment.points > 0 else "-"
        changes.append(f"{sign}{_points(abs(adjustment.points))}")
    if adjustment.max:
        more = "more" if adjustment.max > 0 else "fewer"
        changes.append(f"{_points(abs(adjustment.max))} {more} can be reached")
    return ": ".join([*([", ".join(changes)] if changes else []), adjustment.reason])


def _points(points: float) -> str:
    return f"{shown(points)} point{'' if shown(points) == '1' else 's'}"
