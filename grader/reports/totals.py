"""A submission's points, in the words of every report."""

from __future__ import annotations

from grader.result import SubmissionResult, shown


def told_totals(result: SubmissionResult) -> list[str]:
    """Return a sentence on the points that count, and one on each optional part that was tried."""
    all_that_counts = f"{shown(result.points)} of {shown(result.max)} points"
    optional = [
        f"Part {id}: {shown(part.points)} of {shown(part.max)} points"
        for id, part in result.optional.items()
    ]
    return [all_that_counts, *optional] if result.counted or not optional else optional
