"""The one result model. Every report is a view of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

SCHEMA_VERSION = 1


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


class Policy(StrEnum):
    """How much a student learns about hidden tests. Visible tests are always shown in full."""

    POINTS = "points"
    """Only how many points they gave."""
    TITLES = "titles"
    """The sentence of each, and whether it passed: no input, no number, no message."""
    FULL = "full"
    """Everything."""


@dataclass(frozen=True)
class TestResult:
    """One test of one submission.

    Attributes:
        id: the test's name in its file, with the parameters in brackets.
        title: the sentence that students and instructors read; the test's docstring.
        hidden: whether the test stands below the hidden marker.
        points: what was reached: `max` or 0.
        max: what the test is worth.
        message: what was called, what came back, what was expected; empty when passed.
        diagnosis: the catalogued mistakes whose output this is; empty when none is known.
        seconds: the test's run time.
    """

    __test__ = False

    id: str
    title: str
    hidden: bool
    max: float
    status: Status
    message: str = ""
    diagnosis: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def points(self) -> float:
        """What the test earned: all of its points or none."""
        return self.max if self.status is Status.PASSED else 0.0

    @property
    def name(self) -> str:
        """The test function's name, without the case."""
        return self.id.partition("[")[0]

    @property
    def case(self) -> str:
        """Which case of a parametrised test it is; empty when there is only one."""
        return self.id.partition("[")[2].removesuffix("]")


@dataclass
class ProblemResult:
    """One problem of one submission.

    Attributes:
        id: the problem's id, such as `01-softmax`.
        sha256: the hash of the student's file; empty when there is none.
        tests: in the order of the test file.
        notes: sentences about the file itself, for example a name that was nearly right.
        diagnoses: what to tell the student about the known mistakes that the answers show.
        mistakes: for each diagnosis the names of its mistakes in the catalogue.
        repeated: whether a test took too long while others were graded at the same time, so that
            this is the result of a second run, alone.
        basis: what the marks rest on; while it stays the same they hold.
        because: why the problem was graded when it was: what its basis had changed in.
    """

    id: str
    sha256: str = ""
    tests: list[TestResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    diagnoses: list[str] = field(default_factory=list)
    mistakes: list[list[str]] = field(default_factory=list)
    repeated: bool = False
    basis: dict[str, str] = field(default_factory=dict)
    because: str = ""

    @property
    def points(self) -> float:
        """What was reached in this problem."""
        return total(t.points for t in self.tests)

    @property
    def max(self) -> float:
        """What the tests that ran are worth."""
        return total(t.max for t in self.tests)

    @property
    def passed(self) -> bool:
        """Whether every test passed; never true when no test ran."""
        return bool(self.tests) and all(t.status is Status.PASSED for t in self.tests)

    @property
    def untouched(self) -> bool:
        """Whether nothing was attempted: no file, or nothing implemented."""
        idle = {Status.MISSING, Status.NOT_IMPLEMENTED}
        return all(t.status in idle for t in self.tests)


@dataclass
class SubmissionResult:
    """All problems of one submission.

    Attributes:
        submission: the submission's name, as found.
        seed: what the hidden tests' inputs were drawn from.
        isolation: how the student's code was kept apart from the tests.
        grader_sha256: hash of the grader, the tests and the solutions, as far as marks depend on
            them.
        notes: sentences about the submission as a whole.
        problems: in the order of the course.
        members: whose work it is, as a learning platform knows them; empty outside of one.
        late: whether the platform says that it came late.
    """

    submission: str
    seed: int
    isolation: str
    grader_sha256: str
    problems: list[ProblemResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    members: tuple[str, ...] = ()
    late: bool = False

    @property
    def points(self) -> float:
        """What was reached in all problems."""
        return total(p.points for p in self.problems)

    @property
    def max(self) -> float:
        """What all problems are worth."""
        return total(p.max for p in self.problems)

    @property
    def status(self) -> str:
        """One word for the gradebook: `graded`, `not_attempted` or `internal`."""
        tests = [t for p in self.problems for t in p.tests]
        if not tests or any(t.status is Status.INTERNAL for t in tests):
            return Status.INTERNAL.value
        return "not_attempted" if all(p.untouched for p in self.problems) else "graded"

    def to_json(self) -> dict[str, Any]:
        """Return plain data with the totals written out, for files and other programs."""
        return {
            "schema": SCHEMA_VERSION,
            "submission": self.submission,
            "status": self.status,
            "points": self.points,
            "max": self.max,
            "seed": self.seed,
            "isolation": self.isolation,
            "grader_sha256": self.grader_sha256,
            "members": list(self.members),
            "late": self.late,
            "notes": self.notes,
            "problems": [_problem_json(p) for p in self.problems],
        }

    @classmethod
    def from_json(cls, data: Any) -> SubmissionResult:
        """Return the result that `to_json` gave.

        Raises:
            ValueError: the data are not those of a result, or of another version of the model.
        """
        try:
            if data["schema"] != SCHEMA_VERSION:
                raise ValueError(f"results of version {data['schema']} are not read any more")
            known = {f.name: data[f.name] for f in fields(cls) if f.name in data}
            problems = [_problem_from(problem) for problem in data["problems"]]
            return cls(**known | {"problems": problems, "members": tuple(data["members"])})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a result: {error!r}") from None


def total(points: Any) -> float:
    """Add points up. A share such as 2/3 + 2/3 + 2/3 makes 2, without the last digits' noise."""
    return round(math.fsum(points), 6)


def shown(points: float) -> str:
    """Return points as a report shows them: with at most two digits behind the point."""
    return f"{round(points, 2):g}"


def _problem_json(problem: ProblemResult) -> dict[str, Any]:
    tests = [asdict(t) | {"points": t.points, "status": t.status.value} for t in problem.tests]
    return {
        "id": problem.id,
        "sha256": problem.sha256,
        "points": problem.points,
        "max": problem.max,
        "notes": problem.notes,
        "diagnoses": problem.diagnoses,
        "mistakes": problem.mistakes,
        "repeated": problem.repeated,
        "basis": problem.basis,
        "because": problem.because,
        "tests": tests,
    }


def _problem_from(data: dict[str, Any]) -> ProblemResult:
    known = {f.name: data[f.name] for f in fields(ProblemResult) if f.name in data}
    return ProblemResult(**known | {"tests": [_test_from(test) for test in data["tests"]]})


def _test_from(data: dict[str, Any]) -> TestResult:
    known = {f.name: data[f.name] for f in fields(TestResult)}
    status, diagnosis = Status(data["status"]), tuple(data["diagnosis"])
    return TestResult(**known | {"status": status, "diagnosis": diagnosis})
