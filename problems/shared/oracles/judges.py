"""What tests require of values that have no single right answer."""

from grader.run.compare import require


def refused(raised, call, reason=""):
    """A call raised ValueError; `raised` is the exception's name, or empty."""
    found = f"It raised {raised}" if raised else "It was accepted"
    why = f", as {reason}" if reason else ""
    require(raised == "ValueError", f"{call}\n{found}; it should raise ValueError{why}.")


def start_differs(starts, call, name):
    """A layer starts with other weights after another seed."""
    first, second = starts
    even = first.unique().numel() == 1 < first.numel()
    require(
        not first.equal(second),
        f"{call}, made twice\nBoth times `{name}` starts with the same weights, though the seed "
        "was set to 1 before the first and to 2 before the second. "
        + ("All its numbers are alike." if even else "Is a seed set in your code?"),
    )
