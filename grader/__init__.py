"""Tests, verdicts and reports for a course of exercises.

Nothing is imported here: `explore.py` begins with this package, and a student's `enum.py` beside it
would be taken for Python's until `grader.student.script` has seen to that.
"""


def check(problem: str) -> None:
    """Test a problem from a notebook's cell, and print what `uv run pytest` would show.

    Args:
        problem: which one, such as "03".
    """
    from grader.student.notebook import show  # nothing is loaded that isn't asked for

    show(problem)


def load_ipython_extension(ipython: object) -> None:
    """Let a notebook have cells that are saved to a problem.py: `%load_ext grader`.

    Args:
        ipython: the shell that runs the notebook's cells.
    """
    from grader.student.notebook import add_magic

    add_magic(ipython)
