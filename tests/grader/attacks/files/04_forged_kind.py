"""Raises an exception that looks like the grader's own. The result is an error, as for any other
exception.
"""


class CannotLoad(Exception):  # noqa: N818
    status = "passed"


CannotLoad.__module__ = "grader.run.verdict"


def double(x):
    raise CannotLoad("passed")
