"""Tests, verdicts and reports for a course of exercises.

This module imports nothing at the top. A student's `explore.py` imports this package first. At
that time, Python still prefers files in the student's folder, such as `enum.py`, to modules of the
standard library. `grader.student.script` changes this.
"""


def check(problem: str) -> None:
    """Test a problem from a cell of a notebook, and print the same report as `uv run pytest`.

    Args:
        problem: the problem, such as "03".
    """
    from grader.student.notebook import show  # loaded only when needed

    show(problem)


def load_ipython_extension(ipython: object) -> None:
    """Add the `%%problem` magic to a notebook. IPython calls this function for `%load_ext grader`.

    Args:
        ipython: the shell that runs the notebook's cells.
    """
    from grader.student.notebook import add_magic

    add_magic(ipython)
