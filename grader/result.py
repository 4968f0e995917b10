"""The model of results, from which every report is written."""

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

from grader.text import line, look, person_name

SCHEMA_VERSION = 7

NOT_YET = "This can't be judged yet: "
"""The start of the message of a test that can't be judged because the code stops before it."""


def not_yet(reason: str) -> str:
    """Return the message of a test that can't be judged for this reason. The message begins with
    `NOT_YET`.
    """
    return reason if reason.startswith(NOT_YET) else NOT_YET + reason


_MOST_POINTS = 1e6  # of one test; the grader never writes a larger number


class Status(StrEnum):
    """How a test ended. Only `PASSED` gives points."""

    PASSED = "passed"
    FAILED = "failed"
    """The answer was wrong."""
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
    """The process of the student's code ended."""
    BAD_OUTPUT = "bad_output"
    """The returned value can't be read as tensors and plain data."""
    INTERNAL = "internal"
    """The grader failed; the student never gets a zero for it."""


DIAGNOSED = frozenset({Status.FAILED, Status.ERROR, Status.FORBIDDEN})
"""The statuses that a mistake in the student's code leads to."""

ALTERNATIVE = "\nOr as if "
"""The text in a diagnosis between mistakes that give the same answers."""


class Policy(StrEnum):
    """What feedback shows of hidden tests. Visible tests are always shown in full."""

    POINTS = "points"
    """Only how many points they gave."""
    TITLES = "titles"
    """The sentence of each, and whether it passed: no input, no number, no message."""
    FULL = "full"
    """Everything."""


class Isolation(StrEnum):
    """How student code is isolated from the tests."""

    SANDBOX = "sandbox"
    """In confined processes."""
    PROCESS = "process"
    """In separate processes that are not confined."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of one test for one submission. It is small, as a run keeps all results in memory.

    Attributes:
        id: the test's name in its file, with the parameters in brackets.
        title: the test's docstring, which students and instructors read.
        hidden: whether the test is in the hidden half.
        points: the points earned: `max` or 0.
        max: the points of the test.
        message: the call, the returned value and the expected one; empty when passed.
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
        # Texts that many submissions share are in memory once, also when read from a file.
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
        """Whether the test got a wrong answer. A function that is not implemented gives no
        answer.
        """
        return self.status not in (Status.PASSED, Status.NOT_IMPLEMENTED)

    @property
    def is_judged(self) -> bool:
        """Whether the test could be judged, as `not_yet` was not needed."""
        return not self.message.startswith(NOT_YET)

    @property
    def name(self) -> str:
        """The test function's name, without the case."""
        return self.id.partition("[")[0]

    @property
    def case(self) -> str:
        """The parameters of a parametrised test, or ""."""
        return self.id.partition("[")[2].removesuffix("]")


WrongAnswers = dict[str, str]
"""Wrong answers of a function or a class to the probe, as short texts by question."""


class Provenance(TypedDict, total=False):
    """The inputs that a problem's marks depend on. Marks are valid until one of them changes.

    Attributes:
        submission: the hash of the student's file, or the reason why there is no file.
        tests: a hash of the tests and the solution.
        grader: a hash of the code of the grader that marks depend on.
        python: the version of Python.
        torch: the version of torch.
        seed: the seed of the tests' inputs.
        limits: the time and memory limits of student code.
        isolation: the isolation of student code.
        words: the hash of the mistakes' names and sentences. No mark depends on it.
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
        max: the change of the maximum, when a test is dropped for all.
    """

    points: float
    reason: str
    max: float = 0.0


@dataclass
class ProblemResult:
    """One problem of one submission.

    Attributes:
        id: the problem's id, such as `01-some-name`.
        sha256: the hash of the student's file; empty when there is none.
        tests: in the order of the test file; at home the most informative failure is first.
        notes: sentences about the file itself, for example about a misspelled name.
        diagnoses: the sentences about the known mistakes that the answers show. The first may be
            the message of the first test that fails, about a module's parts.
        mistakes: for each diagnosis the names of its mistakes; none for such a message.
        repeated: whether this is the result of a second run, alone, because a test took too long
            or its process was killed while others were graded at the same time.
        provenance: the inputs that the marks depend on.
        reason: why the problem was graded: the inputs that had changed.
        late: whether the platform reports that this problem's file was late.
        handed_in: when the file's bytes were first submitted, in ISO 8601 with the zone; empty if
            no platform reported it.
        adjustments: the changes of the marks after the tests.
        part: the id of its part of the course.
        optional: whether that part is optional, so that it doesn't count in the total.
        unknown: by function or class, the wrong answers that match no known mistake.
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
        """The points of the tests, before any adjustment."""
        return total(t.points for t in self.tests)

    @property
    def points(self) -> float:
        """The adjusted points, never below 0."""
        return max(0.0, total([self.earned, *(a.points for a in self.adjustments)]))

    @property
    def max(self) -> float:
        """The maximum points, without tests that were dropped for all."""
        return total([*(t.max for t in self.tests), *(a.max for a in self.adjustments)])

    @property
    def with_cases(self) -> list[list[TestResult]]:
        """The tests, each as the list of its cases."""
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
        """Whether nothing was attempted: no file, or nothing implemented."""
        idle = {Status.MISSING, Status.NOT_IMPLEMENTED}
        return all(t.status in idle for t in self.tests)

    @property
    def order(self) -> int:
        """The position on a student's page: wrong problems first, untouched next, passed last."""
        return 2 if self.passed else int(self.untouched)

    @property
    def is_stub(self) -> bool:
        """Whether the submitted file is the stub."""
        return bool(self.sha256 and self.tests) and self.untouched

    @property
    def absent(self) -> bool:
        """Whether no file was submitted."""
        return not self.sha256 and all(t.status is Status.MISSING for t in self.tests)

    @property
    def skipped(self) -> bool:
        """Whether the problem is optional and was not attempted.

        A file that lacks all names that the tests need counts as attempted.
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
    """All problems of one submission.

    Attributes:
        submission: the unique name of the submission's result files, safe as a file name.
        seed: the seed of the hidden tests' inputs.
        isolation: how the student's code was isolated from the tests; None when the grader failed
            before it ran.
        grader_sha256: the hash of the files of the grader, the tests and the solutions that marks
            depend on.
        notes: sentences about the submission as a whole.
        problems: in the order of the course.
        members: the platform's names of the students; empty without a platform.
        late: whether the platform reports that a file was late.
        identity: the stable id of the student or group: the platform's, such as `canvas:1004`,
            else the full name of the folder or archive.
        full_name: the real name of the student or group from the platform or the folder, in any
            script, or "".
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
        """The identity, or the name if there is no identity."""
        return self.identity or self.submission

    @property
    def counted(self) -> list[ProblemResult]:
        """The problems that count in the total."""
        return [p for p in self.problems if not p.optional]

    @property
    def points(self) -> float:
        """The total of the problems that count; optional ones never change it."""
        return total(p.points for p in self.counted)

    @property
    def max(self) -> float:
        """The maximum total of the problems that count."""
        return total(p.max for p in self.counted)

    @property
    def optional(self) -> dict[str, PartResult]:
        """The result of each attempted optional part, by the part's id."""
        tried = [p for p in self.problems if p.optional and not p.skipped]
        ids = dict.fromkeys(p.part for p in tried)
        return {id: PartResult([p for p in tried if p.part == id]) for id in ids}

    def without_skipped(self) -> SubmissionResult:
        """Return the result without optional problems that were not attempted, for reports."""
        return replace(self, problems=[p for p in self.problems if not p.skipped])

    @property
    def status(self) -> str:
        """The word for the gradebook: `graded`, `not_attempted` or `internal`."""
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
        return totals | data | {"members": [*self.members]}  # JSON has lists and no tuples

    @classmethod
    def from_json(cls, data: Any) -> SubmissionResult:
        """Return the result from the data that `to_json` returned.

        Args:
            data: untrusted plain data, such as the content of a file.

        Raises:
            ValueError: the data is no valid result; the text gives the reason.
        """
        try:
            result = msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        # All other fields of the data, such as the totals, follow from the result.
        if not result._is_sound() or result.to_json() != data:
            raise ValueError("its parts contradict each other")
        return result

    def _is_sound(self) -> bool:
        """Return whether the numbers agree with each other, as in each result that the grader
        writes.
        """
        ids = {problem.id for problem in self.problems}
        tests = [test for problem in self.problems for test in problem.tests]
        adjustments = [change for problem in self.problems for change in problem.adjustments]
        return (
            len(ids) == len(self.problems)
            and all(0 <= t.max <= _MOST_POINTS and 0 <= t.seconds < math.inf for t in tests)
            and all(max(abs(a.points), abs(a.max)) <= _MOST_POINTS for a in adjustments)
        )


def readable_names(results: Iterable[SubmissionResult]) -> dict[str, str]:
    """Return a unique name for each submission in reports, by the submission's name.

    Names that look the same get the beginning of a hash of the identity as a suffix.
    """
    results = list(results)
    names = {r.submission: person_name(r.shown_name) or line(r.submission) for r in results}
    groups: dict[str, list[SubmissionResult]] = {}
    for result in results:
        groups.setdefault(look(names[result.submission]), []).append(result)
    for group in groups.values():
        hashes = _short_hashes({result.who for result in group})
        for result in group if len(hashes) > 1 else ():
            names[result.submission] += f" ({hashes[result.who]})"
    return names


def _short_hashes(identities: Iterable[str]) -> dict[str, str]:
    """Return the hashes of identities, cut off to the shortest length at which all differ."""
    whole = {each: sha256(each.encode(errors="surrogatepass")).hexdigest() for each in identities}
    length = next(n for n in range(4, 65) if len({h[:n] for h in whole.values()}) == len(whole))
    return {each: hash[:length] for each, hash in whole.items()}


def total(points: Any) -> float:
    """Add up points, rounded so that 2/3 + 2/3 + 2/3 is 2."""
    return round(math.fsum(points), 6)


def shown(points: float) -> str:
    """Format points for a report, with at most two decimals."""
    return f"{round(points, 2):g}"
