"""Why a mark is not what the run before had left."""

from __future__ import annotations

from grader.result import ProblemResult


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
