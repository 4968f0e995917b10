"""Record the results of an audit in a file, and compare two audits.

`author audit --record FILE` writes the file. `--against FILE` lists the differences between the
file and the present audit. Statuses are recorded only for tests that did not pass. The file
contains one fact per line, so that a diff of two files is readable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from grader.author.audit import Audit
from grader.author.running import CandidateOutcome
from grader.course import Course, Problem
from grader.errors import UsageError
from grader.files import write_whole
from grader.grade.pool import grade_all
from grader.grade.settings import Settings
from grader.intake.submissions import find_submissions
from grader.result import ProblemResult, Status, SubmissionResult

_SUBMISSION = "submission "


@dataclass
class RecordedTest:
    """The test results of one candidate or submission for one problem.

    Attributes:
        points: the earned points.
        named: the names of the diagnosed mistakes.
        not_passed: maps the id of each test that did not pass to its status.
    """

    points: float
    named: list[str]
    not_passed: dict[str, str]


@dataclass
class Record:
    """The record of one problem.

    Attributes:
        tests: for each test id, the points of the test.
        candidates: the results of each candidate or submission. The keys are kinds and names, such
            as `mistake no_scale`.
    """

    tests: dict[str, float] = field(default_factory=dict)
    candidates: dict[str, RecordedTest] = field(default_factory=dict)


Records = dict[str, Record]
"""A dictionary from problem ids to records."""


def records_of(audit: Audit, graded: Iterable[SubmissionResult] = ()) -> Records:
    """Return the records of an audit and of graded submissions."""
    records: Records = {}
    for outcome in audit.outcomes:
        candidate = outcome.candidate
        name = f"{candidate.kind} {candidate.name}"
        _add(records, name, outcome.result, _named(outcome))
    for submission in graded:
        for problem in submission.problems:
            named = [name for names in problem.mistakes for name in names]
            _add(records, _SUBMISSION + submission.submission, problem, named)
    return records


def _add(records: Records, name: str, result: ProblemResult, named: Iterable[str]) -> None:
    record = records.setdefault(result.id, Record())
    record.tests |= {test.id: round(test.max, 6) for test in result.tests}
    others = {t.id: str(t.status) for t in result.tests if t.status is not Status.PASSED}
    record.candidates[name] = RecordedTest(round(result.points, 6), sorted(named), others)


def _named(outcome: CandidateOutcome) -> set[str]:
    return {name for test in outcome.caught_by for name in test.diagnosis}


def graded_submissions(
    paths: Iterable[Path], course: Course, problems: Iterable[Problem], jobs: int
) -> list[SubmissionResult]:
    """Grade submissions in the sandbox, because their code is untrusted.

    Args:
        paths: the paths of submissions, or of folders that contain submissions.
        course: the course with the tests.
        problems: the problems to grade.
        jobs: the number of submissions to grade at the same time.

    Raises:
        SubmissionError: the paths contain no submission.
        InternalError: nothing can be graded here, for example because there is no sandbox.
    """
    graded: list[SubmissionResult] = []
    chosen = course.only_with(problems)
    submissions = [each for path in paths for each in find_submissions(path, chosen)]
    if submissions:
        grade_all(submissions, chosen, Settings(), jobs, graded.append)
    return graded


def write_records(records: Records, path: Path) -> None:
    """Write the records to a file that `read_records` reads.

    Raises:
        CannotWrite: the file can't be written.
    """
    text = msgspec.json.encode(records, order="deterministic")
    write_whole(path, msgspec.json.format(text, indent=1) + b"\n")


def read_records(path: Path) -> Records:
    """Read a file that `write_records` wrote.

    Raises:
        UsageError: the file does not exist, or was not written by `write_records`.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Records)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist; write it first with --record {path}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} was not written by --record: {error}") from None


def differences(before: Records, now: Records) -> Iterator[str]:
    """Yield a line for each difference between the earlier and the present records.

    Only problems that `now` contains are compared. Submissions are compared only if `now` contains
    a submission.
    """
    with_submissions = any(_is_submission(name) for r in now.values() for name in r.candidates)
    for id, record in now.items():
        earlier = before.get(id, Record())
        yield from (f"{id}: {line}" for line in _in_tests(earlier.tests, record.tests))
        names = sorted({*earlier.candidates, *record.candidates})
        for name in names:
            if with_submissions or not _is_submission(name):
                lines = _in_candidate(name, earlier, record)
                yield from (f"{id}: {name}{line}" for line in lines)


def _is_submission(name: str) -> bool:
    return name.startswith(_SUBMISSION)


def _in_tests(before: dict[str, float], now: dict[str, float]) -> Iterator[str]:
    for test in sorted({*before, *now}):
        if test not in before:
            yield f"{test} is new"
        elif test not in now:
            yield f"{test} is gone"
        elif before[test] != now[test]:
            yield f"{test} is worth {now[test]:g}, was {before[test]:g}"


def _in_candidate(name: str, before: Record, now: Record) -> Iterator[str]:
    old, new = before.candidates.get(name), now.candidates.get(name)
    if old is None or new is None:
        yield " is new" if old is None else " is gone"
        return
    if old.points != new.points:
        yield f" has {new.points:g} points, had {old.points:g}"
    if old.named != new.named:
        yield f" is named {_listed(new.named)}, was {_listed(old.named)}"
    for test in sorted({*old.not_passed, *new.not_passed} & now.tests.keys()):  # others are gone
        here, there = _status(new, now, test), _status(old, before, test)
        if here != there:
            yield f": {test} is {here}, was {there}"


def _status(ended: RecordedTest, record: Record, test: str) -> str:
    return ended.not_passed.get(test, "passed" if test in record.tests else "not there")


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "nothing"
