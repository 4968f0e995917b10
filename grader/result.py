"""Data classes for the results of tests, problems and submissions."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from hashlib import sha256
from itertools import groupby
from typing import Any, ClassVar, TypedDict

import msgspec

from grader.text import line, lookalike_key, person_name

SCHEMA_VERSION = 7

NOT_YET = "This can't be judged yet: "
"""The start of the message of a test that can't be judged because of an earlier mistake."""


def not_yet(reason: str) -> str:
    """Return a message with the reason why a test can't be judged. It starts with `NOT_YET`."""
    return reason if reason.startswith(NOT_YET) else NOT_YET + reason


_MOST_POINTS = 1e6  # a result file with a test of more points is invalid


class Status(StrEnum):
    """How a test ended. Only `PASSED` gives points."""

    PASSED = "passed"
    FAILED = "failed"
    """A check of the test failed."""
    ERROR = "error"
    """The student's code raised an exception."""
    NOT_IMPLEMENTED = "not_implemented"
    """The student's code raised NotImplementedError, as the stub does."""
    MISSING = "missing"
    """The file, or a function or class that the test needs, is missing."""
    FORBIDDEN = "forbidden"
    """The student's code called a function that the problem forbids."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASH = "crash"
    """The process that ran the student's code ended unexpectedly."""
    BAD_OUTPUT = "bad_output"
    """The returned value can't be read as tensors and plain data."""
    INTERNAL = "internal"
    """The grader failed. The student never gets a zero for this test."""


DIAGNOSED = frozenset({Status.FAILED, Status.ERROR, Status.FORBIDDEN})
"""The statuses for which the grader looks for a known mistake."""

ALTERNATIVE = "\nOr as if "
"""The separator in a diagnosis between two mistakes that give the same answers."""


class Policy(StrEnum):
    """How much of the hidden tests the feedback shows. Visible tests are always shown in full."""

    POINTS = "points"
    """Only the points."""
    TITLES = "titles"
    """The title of each test and whether it passed, but no inputs, values or messages."""
    FULL = "full"
    """The same as for visible tests."""


class Isolation(StrEnum):
    """How student code is isolated from the tests."""

    SANDBOX = "sandbox"
    """Student code runs in confined processes."""
    PROCESS = "process"
    """Student code runs in separate processes that are not confined."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one test for one submission.

    Attributes:
        id: the name of the test function, with its parameters in brackets if there are any.
        title: the test's docstring, which students and instructors read.
        hidden: whether the test is in the hidden half.
        points: the points earned: `max` or 0.
        max: the points of the test.
        status: how the test ended.
        message: the call, the returned value and the expected value; empty if the test passed.
        diagnosis: the names of the known mistakes that explain the failure.
        seconds: the test's run time.
    """

    __test__: ClassVar[bool] = False

    id: str
    title: str
    hidden: bool
    max: float
    status: Status
    message: str = ""
    diagnosis: tuple[str, ...] = ()
    seconds: float = 0.0

    def __post_init__(self) -> None:
        # Many submissions have the same texts. Store each text in memory only once.
        for name in ("id", "title", "message"):
            object.__setattr__(self, name, sys.intern(getattr(self, name)))

    def __reduce__(self) -> tuple[type[TestResult], tuple[Any, ...]]:
        """Let pickle call the constructor, which interns the texts."""
        return TestResult, tuple(getattr(self, each.name) for each in fields(self))

    @property
    def points(self) -> float:
        """The points earned: all of the test's points or none."""
        return self.max if self.status is Status.PASSED else 0.0

    @property
    def is_wrong(self) -> bool:
        """Whether the test failed for another reason than a function that is not implemented."""
        return self.status not in (Status.PASSED, Status.NOT_IMPLEMENTED)

    @property
    def is_judged(self) -> bool:
        """Whether the test could be judged. If not, its message starts with `NOT_YET`."""
        return not self.message.startswith(NOT_YET)

    @property
    def name(self) -> str:
        """The name of the test function, without parameters in brackets."""
        return self.id.partition("[")[0]

    @property
    def case(self) -> str:
        """The parameters in brackets, or "" if the test has no parameters."""
        return self.id.partition("[")[2].removesuffix("]")


WrongAnswers = dict[str, str]
"""Maps questions of the probe to the wrong answers of one function or class, as short texts."""


class Provenance(TypedDict, total=False):
    """The inputs from which a problem's result was computed.

    All inputs except `words` affect marks. If one of these changes, the problem is graded again.

    Attributes:
        submission: the hash of the student's file, or the reason why there is no file.
        tests: a hash of the tests and the solution.
        grader: a hash of the grader's code that marks depend on.
        python: the version of Python.
        torch: the version of torch.
        seed: the seed of the tests' inputs.
        limits: the time and memory limits of student code.
        isolation: how student code is isolated from the tests.
        words: a hash of the names and sentences of known mistakes, which do not affect marks.
    """

    submission: str
    tests: str
    grader: str
    python: str
    torch: str
    seed: int
    limits: str
    isolation: Isolation
    words: str


@dataclass(frozen=True)
class Adjustment:
    """A change of a problem's marks by an instructor's correction or the late policy.

    Attributes:
        points: the points added; negative when points are deducted.
        reason: the sentence that student and instructor read.
        max: the change of the maximum points; negative if a test is dropped for all students.
    """

    points: float
    reason: str
    max: float = 0.0


@dataclass
class ProblemResult:
    """The result of one problem of one submission.

    Attributes:
        id: the problem's id, such as `01-some-name`.
        sha256: the hash of the student's file; empty if there is no file.
        tests: the results of the tests in the order of the test file. In a student's test run, the
            most informative failure is first.
        notes: sentences about the file itself, for example about a misspelled name.
        diagnoses: sentences about the mistakes that explain the wrong answers. A sentence
            can also come from the first failed test, for example about a missing layer of a module.
        mistakes: a list for each sentence in `diagnoses`, with the names of the known mistakes that
            the sentence describes. The list may be empty.
        repeated: whether the tests were run a second time, alone. This happens if a test takes too
            long, or its process is killed, while other submissions are graded at the same time.
        provenance: the inputs that the marks depend on.
        reason: the reason why the problem was graded: the inputs that had changed.
        late: whether the platform reports that this problem's file was late.
        handed_in: the time when the file's bytes were first submitted, in ISO 8601 with the time
            zone; empty if no platform reported it.
        adjustments: the changes of the marks by corrections and the late policy.
        part: the id of the part of the course that contains the problem.
        optional: whether that part is optional. An optional problem doesn't count in the total.
        unknown: for each function or class, the wrong answers that match no known mistake.
    """

    id: str
    sha256: str = ""
    tests: list[TestResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    diagnoses: list[str] = field(default_factory=list)
    mistakes: list[list[str]] = field(default_factory=list)
    repeated: bool = False
    provenance: Provenance = field(default_factory=Provenance)
    reason: str = ""
    late: bool = False
    handed_in: str = ""
    adjustments: list[Adjustment] = field(default_factory=list)
    unknown: dict[str, WrongAnswers] = field(default_factory=dict)
    part: str = ""
    optional: bool = False

    @property
    def earned(self) -> float:
        """The sum of the points of all tests, before any adjustment."""
        return total(t.points for t in self.tests)

    @property
    def points(self) -> float:
        """The points after all adjustments, at least 0."""
        return max(0.0, total([self.earned, *(a.points for a in self.adjustments)]))

    @property
    def max(self) -> float:
        """The maximum points, without tests that were dropped for all students."""
        return total([*(t.max for t in self.tests), *(a.max for a in self.adjustments)])

    @property
    def with_cases(self) -> list[list[TestResult]]:
        """The results, grouped by test function. A parametrized function has several results."""
        return [list(cases) for _, cases in groupby(self.tests, key=lambda test: test.name)]

    @property
    def passed(self) -> bool:
        """Whether every test passed. It is False if no test ran."""
        return bool(self.tests) and all(t.status is Status.PASSED for t in self.tests)

    @property
    def ended_alike(self) -> bool:
        """Whether all tests that could be judged have the same status and message."""
        judged = [test for test in self.tests if test.is_judged]
        return len({(t.status, t.message) for t in judged}) == 1

    @property
    def untouched(self) -> bool:
        """Whether the student attempted nothing: each function is missing or not implemented."""
        not_attempted = {Status.MISSING, Status.NOT_IMPLEMENTED}
        return all(t.status in not_attempted for t in self.tests)

    @property
    def order(self) -> int:
        """The sort key on a student's page: wrong problems first, then untouched, then passed."""
        return 2 if self.passed else int(self.untouched)

    @property
    def is_stub(self) -> bool:
        """Whether a file was submitted, but it implements nothing."""
        return bool(self.sha256 and self.tests) and self.untouched

    @property
    def absent(self) -> bool:
        """Whether no file was submitted."""
        return not self.sha256 and all(t.status is Status.MISSING for t in self.tests)

    @property
    def skipped(self) -> bool:
        """Whether the problem is optional and was not attempted.

        A file without any of the functions that the tests need counts as attempted.
        """
        stubs = all(t.status is Status.NOT_IMPLEMENTED for t in self.tests)
        nothing = stubs or (self.untouched and not self.sha256)
        return self.optional and nothing and not self.points


@dataclass(frozen=True)
class PartResult:
    """The result of an optional part of the course.

    Attributes:
        problems: the attempted problems of the part.
    """

    problems: list[ProblemResult]

    @property
    def points(self) -> float:
        """The points earned."""
        return total(p.points for p in self.problems)

    @property
    def max(self) -> float:
        """The maximum points."""
        return total(p.max for p in self.problems)


@dataclass
class SubmissionResult:
    """The results of all problems of one submission.

    Attributes:
        submission: the unique name of the submission, which is also the name of its result files.
        seed: the seed of the hidden tests' inputs.
        isolation: how the student's code was isolated from the tests; None if the grader failed
            before it ran the code.
        grader_sha256: the hash of the files of the grader, the tests and the solutions that marks
            depend on.
        notes: sentences about the submission as a whole.
        problems: the results of the problems, in the order of the course.
        members: the names of the students on the platform; empty if no platform was used.
        late: whether the platform reports that a file was late.
        identity: the stable id of the student or group. It is the id on the platform, such as
            `canvas:1004`, or else the full name of the folder or archive.
        full_name: the real name of the student or group from the platform or the folder, in any
            writing system, or "".
    """

    submission: str
    seed: int
    isolation: Isolation | None
    grader_sha256: str
    problems: list[ProblemResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    members: tuple[str, ...] = ()
    late: bool = False
    identity: str = ""
    full_name: str = ""

    @property
    def shown_name(self) -> str:
        """The name of the student or group in reports."""
        return self.full_name or self.submission

    @property
    def who(self) -> str:
        """The identity, or the submission's name if there is no identity."""
        return self.identity or self.submission

    @property
    def counted(self) -> list[ProblemResult]:
        """The problems that count in the total."""
        return [p for p in self.problems if not p.optional]

    @property
    def points(self) -> float:
        """The total of the problems that are not optional."""
        return total(p.points for p in self.counted)

    @property
    def max(self) -> float:
        """The maximum total of the problems that are not optional."""
        return total(p.max for p in self.counted)

    @property
    def optional(self) -> dict[str, PartResult]:
        """A dictionary from the id of each attempted optional part to its result."""
        tried = [p for p in self.problems if p.optional and not p.skipped]
        ids = dict.fromkeys(p.part for p in tried)
        return {id: PartResult([p for p in tried if p.part == id]) for id in ids}

    def without_skipped(self) -> SubmissionResult:
        """Return the result without optional problems that were not attempted, for reports."""
        return replace(self, problems=[p for p in self.problems if not p.skipped])

    @property
    def status(self) -> str:
        """The status in the gradebook: `graded`, `not_attempted` or `internal`."""
        tests = [t for p in self.problems for t in p.tests]
        if self.problems and not tests or any(t.status is Status.INTERNAL for t in tests):
            return Status.INTERNAL.value
        return "not_attempted" if all(p.untouched for p in self.problems) else "graded"

    def to_json(self) -> dict[str, Any]:
        """Return plain data for a JSON file, including the totals."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        for problem, of_problem in zip(self.problems, data["problems"], strict=True):
            of_problem |= {"points": problem.points, "max": problem.max}
            for test, of_test in zip(problem.tests, of_problem["tests"], strict=True):
                of_test |= {"points": test.points, "diagnosis": [*test.diagnosis]}
        totals = {
            "schema": SCHEMA_VERSION,
            "submission": self.submission,
            "status": self.status,
            "points": self.points,
            "max": self.max,
            "optional": {
                id: {"points": part.points, "max": part.max} for id, part in self.optional.items()
            },
        }
        return totals | data | {"members": [*self.members]}  # JSON has no tuples

    @classmethod
    def from_json(cls, data: Any) -> SubmissionResult:
        """Create a result from data in the format of `to_json`.

        Args:
            data: untrusted plain data, such as the content of a file.

        Raises:
            ValueError: the data is not a valid result. The text contains the reason.
        """
        try:
            result = msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        # The data also contains computed values, such as totals. They must be correct.
        if not result._is_sound() or result.to_json() != data:
            raise ValueError("its values contradict each other")
        return result

    def _is_sound(self) -> bool:
        """Return whether ids are unique and numbers are in the ranges that the grader writes."""
        ids = {problem.id for problem in self.problems}
        tests = [test for problem in self.problems for test in problem.tests]
        adjustments = [change for problem in self.problems for change in problem.adjustments]
        return (
            len(ids) == len(self.problems)
            and all(0 <= t.max <= _MOST_POINTS and 0 <= t.seconds < math.inf for t in tests)
            and all(max(abs(a.points), abs(a.max)) <= _MOST_POINTS for a in adjustments)
        )


def readable_names(results: Iterable[SubmissionResult]) -> dict[str, str]:
    """Return a unique display name of each submission for reports. The keys are submission names.

    If display names look the same, the beginning of a hash of the identity is appended.
    """
    results = list(results)
    names = {r.submission: person_name(r.shown_name) or line(r.submission) for r in results}
    groups: dict[str, list[SubmissionResult]] = {}
    for result in results:
        groups.setdefault(lookalike_key(names[result.submission]), []).append(result)
    for group in groups.values():
        hashes = _short_hashes({result.who for result in group})
        for result in group if len(hashes) > 1 else ():
            names[result.submission] += f" ({hashes[result.who]})"
    return names


def _short_hashes(identities: Iterable[str]) -> dict[str, str]:
    """Return a hash of each identity, cut off to the shortest length at which all hashes differ."""
    whole = {each: sha256(each.encode(errors="surrogatepass")).hexdigest() for each in identities}
    length = next(n for n in range(4, 65) if len({h[:n] for h in whole.values()}) == len(whole))
    return {each: hash[:length] for each, hash in whole.items()}


def total(points: Any) -> float:
    """Add up points, rounded so that 2/3 + 2/3 + 2/3 is 2."""
    return round(math.fsum(points), 6)


def shown(points: float) -> str:
    """Format points for a report, with at most two decimals."""
    return f"{round(points, 2):g}"
