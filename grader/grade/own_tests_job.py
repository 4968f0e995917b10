"""Students' own tests as a job that the boundary carries, which knows nothing of tests itself.

A worker gets a file of the catalogue and the tests, and nothing that says whether that file is
right: not its name, no docstring, no comment. All that is taken from it is how each test ended. So
whoever forges that says of a file what an honest test could say as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from grader.run.own_tests import MOST_TESTS, Ended, OwnTest, RefusedTests, Unusable, run_own_tests

JOB = "grader.grade.own_tests_loaded:run_in_worker"
"""What a boundary calls the job."""

_LineNumber = Annotated[int, Meta(ge=0, lt=1 << 20)]
_TestName = Annotated[str, Meta(pattern=r"\A[^\W\d]\w{0,99}\Z")]
_ShortText = Annotated[str, Meta(max_length=100)]


_TestNames = list[str]
_NAMES = msgspec.json.Decoder(tuple[_TestNames, _TestNames])
"""Made before any worker is forked: to make it takes longer than most tests."""


def job_data(tests: bytes, without: Sequence[str], first: Sequence[str]) -> bytes:
    """Return what a worker gets beside a file of the catalogue.

    The tests stand there as they are: the boundary looks at what they may need.

    Args:
        tests: the student's file.
        without: the names of tests that are left out.
        first: the names of tests to begin with.
    """
    return msgspec.json.encode((without, first)) + b"\n" + tests


class Report(Struct, forbid_unknown_fields=True):
    """How each test ended, or why there were none.

    Attributes:
        tests: name, ending and line of each.
        unusable: the reason, what it is about, and a line.
    """

    tests: Annotated[list[tuple[_TestName, Ended, _LineNumber]], Meta(max_length=MOST_TESTS)] = []
    unusable: tuple[RefusedTests, _ShortText, _ShortText, _LineNumber] | None = None

    def found(self) -> list[OwnTest]:
        """Return how each test ended.

        Raises:
            Unusable: the tests can't be run.
        """
        if self.unusable is not None:
            raise Unusable(*self.unusable)
        return [OwnTest(*each) for each in self.tests]


def run_in_worker(data: bytes, module: ModuleType) -> Report:
    """Run a file of tests on a module until one of them fails."""
    names, _, tests = data.partition(b"\n")
    without, first = _NAMES.decode(names)
    try:
        found = run_own_tests(tests, module, without=without, first=first)
    except Unusable as reason:
        name, other = reason.name[:100], reason.other[:100]
        return Report(unusable=(reason.reason, name, other, reason.line))
    return Report([(test.name, test.ended, test.line) for test in found[:MOST_TESTS]])
