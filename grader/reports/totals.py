"""A submission's points, in the words of every report."""

from __future__ import annotations

from grader.result import Part, SubmissionResult, shown


def told_totals(result: SubmissionResult) -> list[str]:
    """Return a sentence on the points of part one, and one on part two for who tried it."""
    one = f"{shown(result.points)} of {shown(result.max)} points"
    two = f"{shown(result.part_two_points)} of {shown(result.part_two_max)} points"
    tried = {part: bool(result.of_part(part)) for part in Part}
    told = [] if tried[Part.TWO] and not tried[Part.ONE] else [one]
    return [*told, f"Part two: {two}"] if tried[Part.TWO] else told
