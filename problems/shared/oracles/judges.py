"""Judges of values that have no single right answer."""

from grader.run.compare import require


def refused(raised, call, reason=""):
    """A call raised ValueError; `raised` is the exception's name, or empty."""
    found = f"It raised {raised}" if raised else "It was accepted"
    why = f", as {reason}" if reason else ""
    require(raised == "ValueError", f"{call}\n{found}; it should raise ValueError{why}.")
