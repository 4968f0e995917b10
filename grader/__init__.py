"""Tests, verdicts and reports for a course of exercises.

This module imports nothing. `explore.py` imports this package first, and until
`grader.student.script` has run, Python would import a student's `enum.py` from the same folder.
"""


def check(problem: str) -> None:
    """Test a problem from a cell of a notebook, and print the same report as `uv run pytest`.

    Args:
        problem: the problem, such as "03".
    """
    from grader.student.notebook import show  # loaded only when needed

    show(problem)


def load_ipython_extension(ipython: object) -> None:
    """Enable notebook cells that are saved to a problem.py: `%load_ext grader`.

    Args:
        ipython: the shell that runs the notebook's cells.
    """
    from grader.student.notebook import add_magic

    add_magic(ipython)
