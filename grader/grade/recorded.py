"""Run a problem's tests in workers, and judge the records that the workers send.

Visible and hidden tests, and tests with different forbidden functions, run in separate workers.
Visible tests run first. If a worker ends or hangs, the current test fails, and the remaining tests
run in a new worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NoReturn

from grader.course import SUBMISSION_FILE, Problem
from grader.diagnose.probe import PROBE_SECONDS, Answers
from grader.errors import CannotLoad, CourseError, InternalError
from grader.intake.handed_in import StudentFile
from grader.result import Status
from grader.run.collecting import CollectedTest, ProblemTests
from grader.run.encoding import BadRecord
from grader.run.judging import Expectation, expect, verdict
from grader.run.orders import (
    LoadReport,
    files_of_half,
    files_of_probe,
    known_only,
    order,
    probe_order,
    read_answers,
)
from grader.run.runner import GIVEN_UP, MOST_TIMEOUTS, add_result
from grader.run.session import OpenModule, Session
from grader.run.verdict import Verdict
from grader.sandbox.attempts import sentences_on
from grader.sandbox.failures import BAD_OUTPUT, WorkerFailure, while_imported
from grader.sandbox.frames import ProtocolError
from grader.sandbox.recorder import Recorder, SubmissionBudget
from grader.sandbox.sandbox import Sandbox
from grader.sandbox.spawn import Preloaded

_LOAD = "grader.run.orders:load_tests"
_LOAD_PROBE = "grader.run.orders:load_questions"
_NOT_AGAIN = f"{SUBMISSION_FILE} can't be imported a second time."


class _InWorkers:
    """The loader of a session in the trusted process. Only workers load students' files."""

    def __call__(self, problem: Problem, forbidden: tuple[str, ...]) -> NoReturn:
        """Raise an error, because student code must not run in the trusted process."""
        raise InternalError(f"a student's {problem.id} must not be loaded in the trusted process")

    def forget(self, problem: Problem) -> None:
        """Do nothing, because no module is cached."""


IN_WORKERS = _InWorkers()
"""The loader for sessions with tests that run in workers."""


class RecordedTests:
    """The tests of some problems, which run in workers.

    Args:
        tests: all tests of the problems.
        sandbox: the sandbox for student code.
        quotes_hidden: whether results may contain text from a worker with hidden tests. This text
            could reveal hidden inputs, so only instructors may read it.
    """

    def __init__(
        self,
        tests: Iterable[CollectedTest],
        sandbox: Sandbox,
        *,
        quotes_hidden: bool = False,
    ) -> None:
        self.quotes_hidden = quotes_hidden
        self._tests = [*tests]
        self._sandbox = sandbox
        problems = {test.problem.id: test.problem for test in self._tests}
        self._halves = {
            (id, hidden): Preloaded(_LOAD, files_of_half(problem, hidden=hidden))
            for id, problem in problems.items()
            for hidden in (False, True)
        }
        self._probes = {
            id: Preloaded(_LOAD_PROBE, files_of_probe(problem))
            for id, problem in problems.items()
            if problem.probe_file.is_file()
        }
        self._expected: dict[tuple[CollectedTest, int], Expectation] = {}

    def run(
        self,
        session: Session,
        problem: Problem,
        file: StudentFile,
        budget: SubmissionBudget,
        wanted: str = "",
    ) -> Recording:
        """Run the tests of a problem on a file, add the results to the session, and return the
        recording.

        Args:
            session: the session to which the results are added. It contains the seed.
            problem: the problem.
            file: the student's file.
            budget: the time that is left for the submission.
            wanted: the id or name of the only test to run; empty for all tests.

        Raises:
            CourseError: the problem has no test `wanted`.
        """
        tests = [
            test
            for test in self._tests
            if test.problem == problem and wanted in ("", test.id, test.name)
        ]
        if not tests:
            raise CourseError(f"there is no test {wanted}")
        run = session.again[problem.id] = Recording(self, session, file.source or b"", budget)
        if file.source is None:
            status = Status.ERROR if file.bad else Status.MISSING
            run.cannot_load = Verdict(status, file.reason)
        chosen = session.choose(tests)
        run.all_of(chosen)
        for test in chosen:
            outcome, seconds = run.verdicts[test]
            add_result(test, session, outcome, seconds)
        return run

    def expected(self, test: CollectedTest, seed: int) -> Expectation:
        """Return the expected values of a test. They depend on the seed."""
        if (test, seed) not in self._expected:
            reference = OpenModule(test.tests.solution)
            session = Session(reference, hidden=True, seed=seed, watch=False, diagnose=False)
            self._expected[test, seed] = expect(test, session)
        return self._expected[test, seed]

    def recorder(
        self,
        tests: Sequence[CollectedTest],
        seed: int,
        source: bytes,
        budget: SubmissionBudget,
    ) -> Recorder:
        """Return the connection to a new worker that runs these tests.

        `_kind` must be the same for all these tests.
        """
        steps = order([(test, self.expected(test, seed)) for test in tests], seed)
        first = tests[0]
        half = self._halves[first.problem.id, first.hidden]
        return self._sandbox.record(half, steps, source, first.forbidden, budget)

    def prober(
        self, problem: Problem, forbidden: tuple[str, ...], source: bytes, budget: SubmissionBudget
    ) -> Recorder:
        """Return the connection to a new worker that runs the problem's probe on `source`."""
        probe, asked = self._probes[problem.id], probe_order(forbidden)
        return self._sandbox.record(probe, asked, source, forbidden, budget)


def _kind(test: CollectedTest) -> tuple[bool, tuple[str, ...]]:
    """Return the properties of a test that all tests of one worker must share."""
    return test.hidden, test.forbidden


@dataclass
class Recording:
    """The state of a run of one problem's tests on one file.

    Attributes:
        tests: starts workers and computes expected values.
        session: the test session, with the seed.
        source: the content of the student's file.
        budget: the time that is left for the submission.
        verdicts: the verdict and the seconds of each test that ran.
        messages: maps test ids to workers' messages. It is empty unless an instructor replays a
            test.
        tried: sentences about forbidden actions that the file tried while it was loaded.
        cannot_load: the verdict on all remaining tests if the file can't be loaded, or if too many
            tests reached the time limit; otherwise None.
        timeouts: the number of tests that reached the time limit.
    """

    tests: RecordedTests
    session: Session
    source: bytes
    budget: SubmissionBudget
    verdicts: dict[CollectedTest, tuple[Verdict, float]] = field(default_factory=dict)
    messages: dict[str, bytes] = field(default_factory=dict)
    tried: list[str] = field(default_factory=list)
    cannot_load: Verdict | None = None
    timeouts: int = 0

    def ask(self, tests: ProblemTests) -> dict[str, Answers]:
        """Return the answers to the problem's probe. Return {} if a worker fails.

        Raises:
            CannotLoad: the file can't be loaded.
        """
        answers: dict[str, Answers] = {}
        left = PROBE_SECONDS
        for forbidden in tests.problem.entry.all_forbidden():
            try:
                recorder = self.tests.prober(tests.problem, forbidden, self.source, self.budget)
                try:
                    self._load(recorder, hidden=False)
                    if self.cannot_load is not None:
                        raise CannotLoad(self.cannot_load.status, self.cannot_load.message)
                    message, seconds = recorder.receive(left)
                finally:
                    recorder.close()
                answers |= read_answers(message)
            except (WorkerFailure, BadRecord):
                return {}
            left = max(0.0, left - seconds)
        return known_only(answers, tests.fingerprints.reference)

    def passed(self, tests: Sequence[CollectedTest]) -> set[str]:
        """Run tests again in new workers, and return the ids of those that pass."""
        again = Recording(self.tests, self.session, self.source, self.budget)
        again.all_of(tests)
        return {
            test.id
            for test, (outcome, _) in again.verdicts.items()
            if outcome.status is Status.PASSED
        }

    def all_of(self, tests: Iterable[CollectedTest]) -> None:
        """Run tests in workers. A worker runs only tests of the same `_kind`."""
        by_worker = sorted(tests, key=_kind)  # stable: keeps the order within a kind
        for _, some in groupby(by_worker, key=_kind):
            self._all_of_a_kind([*some])

    def _all_of_a_kind(self, tests: list[CollectedTest]) -> None:
        """Run tests of the same `_kind`. Start a new worker when a worker can no longer be used."""
        left = tests
        while left:
            if self.timeouts >= MOST_TIMEOUTS:
                self.cannot_load = self.cannot_load or Verdict(Status.TIMEOUT, GIVEN_UP)
            if self.cannot_load:
                self.verdicts |= dict.fromkeys(left, (self.cannot_load, 0.0))
                return
            for test, outcome, seconds in self._in_one_worker(left):
                self.verdicts[test] = outcome, seconds
                self.timeouts += outcome.status is Status.TIMEOUT
            left = [test for test in left if test not in self.verdicts]

    def _in_one_worker(
        self, tests: list[CollectedTest]
    ) -> Iterator[tuple[CollectedTest, Verdict, float]]:
        """Yield tests with their verdicts and seconds, as long as the worker can be used."""
        seed = self.session.seed
        try:
            recorder = self.tests.recorder(tests, seed, self.source, self.budget)
        except WorkerFailure as failure:
            self.cannot_load = _not_imported(failure)
            return
        try:
            self._load(recorder, hidden=tests[0].hidden)
            for test in tests if self.cannot_load is None else ():
                try:
                    message, seconds = recorder.receive()
                except WorkerFailure as failure:
                    yield test, Verdict(failure.status, str(failure)), 0.0
                    return
                expected = self.tests.expected(test, seed)
                quotes = self.tests.quotes_hidden or not test.hidden
                outcome = verdict(test, expected, message, quotes=quotes)
                if self.tests.quotes_hidden:
                    self.messages[test.id] = message
                yield test, outcome, seconds
                if outcome.status is Status.BAD_OUTPUT:
                    return
        finally:
            recorder.close()

    def _load(self, recorder: Recorder, *, hidden: bool) -> None:
        """Read the worker's report on loading the file.

        If the worker has hidden tests, do not show the text of the report.
        """
        try:
            report = LoadReport.read(recorder.receive()[0])
            attempts = sentences_on(report.attempts)
        except WorkerFailure as failure:
            self.cannot_load = _not_imported(failure)
        except (BadRecord, ProtocolError):
            self.cannot_load = _not_imported(WorkerFailure(Status.BAD_OUTPUT, f"{BAD_OUTPUT}."))
        else:
            self.tried += [] if hidden else attempts
            cannot_load = report.cannot_load()
            if cannot_load is not None:
                text = _NOT_AGAIN if hidden else str(cannot_load)
                self.cannot_load = Verdict(cannot_load.status, text)


def _not_imported(failure: WorkerFailure) -> Verdict:
    return Verdict(failure.status, while_imported(failure))
