"""The one result model. Every report is a view of it."""

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
"""How the message of a test begins whose rule nothing is known of, as the code stops before."""


def not_yet(reason: str) -> str:
    """Return the message of a test whose rule can't be judged for this reason, said once."""
    return reason if reason.startswith(NOT_YET) else NOT_YET + reason


_MOST_POINTS = 1e6  # of one test; a number beyond it was not written by a grader


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
    """The file, or the function or class that the test needs, isn't there."""
    FORBIDDEN = "forbidden"
    """The student's code called a function that the problem forbids."""
    TIMEOUT = "timeout"
    MEMORY = "memory"
    CRASH = "crash"
    """The process of the student's code ended."""
    BAD_OUTPUT = "bad_output"
    """What came back can't be read as tensors and plain data."""
    INTERNAL = "internal"
    """The grader's own fault, never a student's zero."""


DIAGNOSED = frozenset({Status.FAILED, Status.ERROR, Status.FORBIDDEN})
"""The statuses that a mistake in the student's code leads to."""

ALTERNATIVE = "\nOr as if "
"""What stands in a diagnosis between mistakes that answer alike."""


class Policy(StrEnum):
    """How much a student learns about hidden tests. Visible tests are always shown in full."""

    POINTS = "points"
    """Only how many points they gave."""
    TITLES = "titles"
    """The sentence of each, and whether it passed: no input, no number, no message."""
    FULL = "full"
    """Everything."""


class Isolation(StrEnum):
    """How student code is kept apart from the tests."""

    SANDBOX = "sandbox"
    """In confined processes."""
    PROCESS = "process"
    """In processes of its own that are not confined."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test of one submission; small, as a run keeps those of the whole class.

    Attributes:
        id: the test's name in its file, with the parameters in brackets.
        title: the sentence that students and instructors read; the test's docstring.
        hidden: whether the test stands below the hidden marker.
        points: what was reached: `max` or 0.
        max: what the test is worth.
        message: what was called, what came back, what was expected; empty when passed.
        diagnosis: the catalogued mistakes that explain the failure; empty when none is known.
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
        # What many submissions have in common is in memory once, also when it comes from a file.
        for name in ("id", "title", "message"):
            object.__setattr__(self, name, sys.intern(getattr(self, name)))

    def __reduce__(self) -> tuple[type[TestResult], tuple[Any, ...]]:
        """Come from another process as newly made, or its names were there once more."""
        return TestResult, tuple(getattr(self, each.name) for each in fields(self))

    @property
    def points(self) -> float:
        """What the test earned: all of its points or none."""
        return self.max if self.status is Status.PASSED else 0.0

    @property
    def is_wrong(self) -> bool:
        """Whether there was a wrong answer; what isn't written yet has none."""
        return self.status not in (Status.PASSED, Status.NOT_IMPLEMENTED)

    @property
    def is_judged(self) -> bool:
        """Whether it says something: not that it waits for something else to be right."""
        return not self.message.startswith(NOT_YET)

    @property
    def name(self) -> str:
        """The test function's name, without the case."""
        return self.id.partition("[")[0]

    @property
    def case(self) -> str:
        """Which case of a parametrised test it is; empty when there is only one."""
        return self.id.partition("[")[2].removesuffix("]")


WrongAnswers = dict[str, str]
"""Wrong answers to small questions about a function or a class, by question, as short texts."""


class Provenance(TypedDict, total=False):
    """What a problem's marks rest on; while it stays the same they hold.

    Attributes:
        submission: the hash of the student's file, or why there is none.
        tests: a hash over tests and solution.
        grader: a hash over the grader's code, as far as marks depend on it.
        python: its version.
        torch: its version.
        seed: what the tests' inputs were drawn from.
        limits: time and memory that student code had.
        isolation: how it was kept apart from the tests.
        words: the hash of what mistakes were named by and told in. No mark rests on it.
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
    """What an instructor's correction or the late policy changes in a problem's marks.

    Attributes:
        points: what is added to what the tests gave; negative when points are taken away.
        reason: the sentence that student and instructor read.
        max: what is added to what can be reached, when a test is left out for all.
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
        tests: in the order of the test file; at home the failed one that says most is first.
        notes: sentences about the file itself, for example a name that was nearly right.
        diagnoses: what to tell the student about the known mistakes that the answers show. The
            first may be the message of the first test that fails, about a module's parts.
        mistakes: for each diagnosis the names of its mistakes in the catalogue; none for that.
        repeated: whether a test took too long while others were graded at the same time, or its
            process was killed by something else, so that this is the result of a second run, alone.
        provenance: what the marks rest on.
        reason: why the problem was graded when it was: what its provenance had changed in.
        late: whether the platform says that this problem's file came late.
        handed_in: when the file's bytes first came, in ISO 8601 with the zone; empty where no
            platform said it.
        adjustments: what changed the marks after the tests had given them.
        part: the id of the part of the course that it belongs to.
        optional: whether that part is for whoever likes to: then it doesn't count in the total.
        unknown: by function or class, the wrong answers that fit no known mistake.
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
        """What the tests gave, before any adjustment."""
        return total(t.points for t in self.tests)

    @property
    def points(self) -> float:
        """What counts: what the tests gave, adjusted, and never below 0."""
        return max(0.0, total([self.earned, *(a.points for a in self.adjustments)]))

    @property
    def max(self) -> float:
        """What the tests that ran are worth, without those that were left out for all."""
        return total([*(t.max for t in self.tests), *(a.max for a in self.adjustments)])

    @property
    def with_cases(self) -> list[list[TestResult]]:
        """The tests, each as the list of its cases."""
        return [list(cases) for _, cases in groupby(self.tests, key=lambda test: test.name)]

    @property
    def passed(self) -> bool:
        """Whether every test passed; never true when no test ran."""
        return bool(self.tests) and all(t.status is Status.PASSED for t in self.tests)

    @property
    def ended_alike(self) -> bool:
        """Whether all tests say the same, but for rules that can't be judged for that reason."""
        judged = [test for test in self.tests if test.is_judged]
        return len({(t.status, t.message) for t in judged}) == 1

    @property
    def untouched(self) -> bool:
        """Whether nothing was attempted: no file, or nothing implemented."""
        idle = {Status.MISSING, Status.NOT_IMPLEMENTED}
        return all(t.status in idle for t in self.tests)

    @property
    def order(self) -> int:
        """The place on a page about one student: first what went wrong, last what is right."""
        return 2 if self.passed else int(self.untouched)

    @property
    def is_stub(self) -> bool:
        """Whether the file was handed in as it was handed out."""
        return bool(self.sha256 and self.tests) and self.untouched

    @property
    def absent(self) -> bool:
        """Whether no file of it was handed in."""
        return not self.sha256 and all(t.status is Status.MISSING for t in self.tests)

    @property
    def skipped(self) -> bool:
        """Whether it is optional and left out.

        A file in which nothing that tests look for has its right name was handed in all the same.
        """
        stubs = all(t.status is Status.NOT_IMPLEMENTED for t in self.tests)
        nothing = stubs or (self.untouched and not self.sha256)
        return self.optional and nothing and not self.points


@dataclass(frozen=True)
class PartResult:
    """What was reached in an optional part of the course.

    Attributes:
        problems: those that were tried.
    """

    problems: list[ProblemResult]

    @property
    def points(self) -> float:
        """What they gave."""
        return total(p.points for p in self.problems)

    @property
    def max(self) -> float:
        """What they are worth."""
        return total(p.max for p in self.problems)


@dataclass
class SubmissionResult:
    """All problems of one submission.

    Attributes:
        submission: the name of the submission's files among the results; safe, and nobody else's.
        seed: what the hidden tests' inputs were drawn from.
        isolation: how the student's code was kept apart from the tests; None when the grader
            failed before it ran.
        grader_sha256: hash of the grader, the tests and the solutions, as far as marks depend on
            them.
        notes: sentences about the submission as a whole.
        problems: in the order of the course.
        members: whose work it is, as a learning platform knows them; empty outside of one.
        late: whether the platform says that any of it came late.
        identity: who it is, the same in every run: the platform's own id, such as `canvas:1004`,
            else the full name of the folder or archive.
        full_name: the real name of a student or group, as the platform or the folder gives it, in
            any script; empty when none is known.
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
        """What reports call the student or group."""
        return self.full_name or self.submission

    @property
    def who(self) -> str:
        """Whose it is: the identity, or where none is known the name."""
        return self.identity or self.submission

    @property
    def counted(self) -> list[ProblemResult]:
        """The problems whose points make the total."""
        return [p for p in self.problems if not p.optional]

    @property
    def points(self) -> float:
        """What was reached in all that counts. What is optional never changes it."""
        return total(p.points for p in self.counted)

    @property
    def max(self) -> float:
        """What all that counts is worth."""
        return total(p.max for p in self.counted)

    @property
    def optional(self) -> dict[str, PartResult]:
        """What was reached in each optional part that was tried, by the part's id."""
        tried = [p for p in self.problems if p.optional and not p.skipped]
        ids = dict.fromkeys(p.part for p in tried)
        return {id: PartResult([p for p in tried if p.part == id]) for id in ids}

    def without_skipped(self) -> SubmissionResult:
        """Return what reports show: what is optional only as far as it was tried."""
        return replace(self, problems=[p for p in self.problems if not p.skipped])

    @property
    def status(self) -> str:
        """One word for the gradebook: `graded`, `not_attempted` or `internal`."""
        tests = [t for p in self.problems for t in p.tests]
        if self.problems and not tests or any(t.status is Status.INTERNAL for t in tests):
            return Status.INTERNAL.value
        return "not_attempted" if all(p.untouched for p in self.problems) else "graded"

    def to_json(self) -> dict[str, Any]:
        """Return plain data with the totals written out, for files and other programs."""
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
        """Return the result that `to_json` gave.

        Args:
            data: plain data of which nothing is known, such as what a file says.

        Raises:
            ValueError: it is no result; the text says what is wrong with it.
        """
        try:
            result = msgspec.convert(data, cls)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None
        # All else that stands there, such as the totals, follows from what was read.
        if not result._is_sound() or result.to_json() != data:
            raise ValueError("its parts contradict each other")
        return result

    def _is_sound(self) -> bool:
        """Tell whether the numbers are those that a grader can have written."""
        ids = {problem.id for problem in self.problems}
        tests = [test for problem in self.problems for test in problem.tests]
        adjustments = [change for problem in self.problems for change in problem.adjustments]
        return (
            len(ids) == len(self.problems)
            and all(0 <= t.max <= _MOST_POINTS and 0 <= t.seconds < math.inf for t in tests)
            and all(max(abs(a.points), abs(a.max)) <= _MOST_POINTS for a in adjustments)
        )


def readable_names(results: Iterable[SubmissionResult]) -> dict[str, str]:
    """Return what reports call everybody, by the name of the submission; nobody is called alike.

    Equal names, as far as one can see, get the beginning of a hash of the identity behind them.
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
    """Return so much of the hash of each that all of them differ."""
    whole = {each: sha256(each.encode(errors="surrogatepass")).hexdigest() for each in identities}
    length = next(n for n in range(4, 65) if len({h[:n] for h in whole.values()}) == len(whole))
    return {each: hash[:length] for each, hash in whole.items()}


def total(points: Any) -> float:
    """Add points up. A share such as 2/3 + 2/3 + 2/3 makes 2, without the last digits' noise."""
    return round(math.fsum(points), 6)


def shown(points: float) -> str:
    """Return points as a report shows them: with at most two digits behind the point."""
    return f"{round(points, 2):g}"
