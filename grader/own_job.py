"""The job that runs a student's own tests on a file: a worker does it, and reports.

The worker gets the file and the tests, and nothing that says whether the file is right: not its
name, no docstring, no comment. All that is taken from it is how each test ended. So whoever forges
that says of a file what an honest test could say as well.
"""

from __future__ import annotations

from types import ModuleType
from typing import Annotated

import numpy.random  # noqa: F401  (a worker would load it anew each time)
import pytest  # noqa: F401  (what the tests import)
from msgspec import Meta, Struct

from grader.own_tests import Ended, OwnTest, run_own_tests
from grader.own_unusable import MOST_TESTS, Refused, Unusable

JOB = "grader.own_job:run"
"""What a boundary calls this job."""

_Line = Annotated[int, Meta(ge=0, lt=1 << 20)]
_Name = Annotated[str, Meta(pattern=r"\A[^\W\d]\w{0,99}\Z")]
_Text = Annotated[str, Meta(max_length=100)]


class Report(Struct, forbid_unknown_fields=True):
    """How each test ended, or why there were none.

    Attributes:
        tests: name, ending and line of each.
        unusable: the reason, what it is about, and a line.
    """

    tests: Annotated[list[tuple[_Name, Ended, _Line]], Meta(max_length=MOST_TESTS)] = []
    unusable: tuple[Refused, _Text, _Text, _Line] | None = None

    def found(self) -> list[OwnTest]:
        """Return how each test ended.

        Raises:
            Unusable: the tests can't be run.
        """
        if self.unusable is not None:
            raise Unusable(*self.unusable)
        return [OwnTest(*each) for each in self.tests]


def run(tests: bytes, module: ModuleType) -> Report:
    """Run a file of tests on a module."""
    try:
        found = run_own_tests(tests, module)
    except Unusable as reason:
        name, other = reason.name[:100], reason.other[:100]
        return Report(unusable=(reason.reason, name, other, reason.line))
    return Report([(test.name, test.ended, test.line) for test in found[:MOST_TESTS]])
