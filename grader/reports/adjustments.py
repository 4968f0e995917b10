"""What changed a mark after the tests had given it, in words."""

from __future__ import annotations

from grader.result import Adjustment, ProblemResult, shown


def told(adjustment: Adjustment) -> str:
    """Return what an adjustment says, with the points that it gives or takes."""
    points = f"{shown(adjustment.points)} points"
    if adjustment.points > 0:
        points = f"+{points}"
    if adjustment.max:
        points += f", and {shown(-adjustment.max)} fewer to reach"
    return f"{adjustment.reason} ({points})"


def why_changed(now: ProblemResult, before: ProblemResult | None) -> str:
    """Return why a problem's mark is not what it was.

    Args:
        now: the problem as it counts.
        before: as the run before left it; None when that isn't known.
    """
    if before is None or now.tests != before.tests:
        reasons = [now.reason, *(a.reason for a in now.adjustments)]
    else:
        new = [a.reason for a in now.adjustments if a not in before.adjustments]
        gone = [a.reason for a in before.adjustments if a not in now.adjustments]
        gone = [f"no longer: {reason}" for reason in gone]
        reasons = new or gone or [a.reason for a in now.adjustments]
    return "; ".join(reasons) or now.reason
