"""Why a file is none of tests on `problem`, each reason with what to do."""

from __future__ import annotations

from enum import StrEnum

MOST_TESTS = 500
"""Tests, cases counted, of one file."""


class Refused(StrEnum):
    """Why a file can't be run as tests, with what to do."""

    LOADING = "It stops while it is read{where}: {name}."
    IMPORT = (
        "It imports {name}{where}, which is not there. A file of tests has Python, torch, NumPy "
        "and pytest, and gets `problem` as an argument of each test."
    )
    ENDS = "It ends the run while it is read."
    NO_TEST = "It has no test. A test is a function such as test_rows(problem)."
    TOO_MANY = f"It has more than {MOST_TESTS} tests."
    NOT_PLAIN = "{name} is no plain function: it must neither be async nor yield."
    NO_PLAIN_CLASS = (
        "{name} is no plain class. A class of tests has no __init__ and is not unittest's; "
        "functions such as test_rows(problem) will do."
    )
    SETUP = "{name} would not be run here. Make it a fixture."
    CASES = "The cases of {name} don't fit the names that they are for."
    PARAMS = "The fixture {name} has params, which are not known here. Use parametrize."
    ASKS = (
        "{name} asks for {other}; a test gets `problem`, monkeypatch, the fixtures of the same "
        "file, and what its own parametrize gives it."
    )
    ODD = "It can't be read as a file of tests."
    DIFFERS = "Its tests are not the same each time that it is read. They must be."


class Unusable(Exception):  # noqa: N818  (it says what the file is)
    """The file is not one of plain tests on the fixture `problem`; the text says what to do.

    Args:
        reason: why.
        name: what it is about.
        other: what else.
        line: of the file; 0 if no line is meant.
    """

    def __init__(self, reason: Refused, name: str = "", other: str = "", line: int = 0) -> None:
        where = f", line {line}" if line else ""
        super().__init__(reason.value.format(name=name, other=other, where=where))
        self.reason, self.name, self.other, self.line = reason, name, other, line
