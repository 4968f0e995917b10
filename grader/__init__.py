"""Tests, verdicts and reports for a course of exercises."""


def check(problem: str) -> None:
    """Test a problem from a notebook's cell, and print what `uv run pytest` would show.

    Args:
        problem: which one, such as "03".
    """
    from grader.student.notebook import show  # nothing is loaded that isn't asked for

    show(problem)
