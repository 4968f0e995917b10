"""Grade many submissions in a few long-lived processes. Each process grades one submission at a
time.

The processes load the tests and never run student code; see `job`. Therefore a crash of a process
is an error of the grader, and the submission gets the status `internal` instead of 0 points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait

from grader.course import Course
from grader.grade.cores import reserved_cores
from grader.grade.outcome import as_result
from grader.grade.processes import Process, Start, processes, undisturbed
from grader.grade.reference import reference_submission, require_full_marks
from grader.grade.retries import first_seconds, grade_again, to_retry
from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.result import Isolation, SubmissionResult


@dataclass
class _Grading:
    process: Process
    connection: Connection
    core: int | None
    submission: Submission | None = None


def grade_all(
    submissions: Sequence[Submission],
    course: Course,
    settings: Settings,
    jobs: int,
    on_result: Callable[[SubmissionResult], None],
) -> None:
    """Grade `submissions` in `jobs` processes, and report each result as soon as possible.

    The reference solutions are graded together with the first submissions. No result is reported
    before the reference solutions have full marks.

    A failure can have another cause than the student's code. For example, a test can take too long
    because other jobs run. A problem with such a failure is graded again at the end, when no other
    job runs. The second result counts.

    Args:
        submissions: the submissions, in any order. All problems in their `files` are graded.
        course: the course with the tests.
        settings: seed, limits and level of isolation.
        jobs: the number of processes that grade at the same time.
        on_result: called once for each submission.

    Raises:
        InternalError: the course's own tests or solutions are broken, or no process can be started.
    """
    needed = {id for submission in submissions for id in submission.files}
    reference = reference_submission(course).only(needed)
    waiting = [*reversed(submissions[1:]), reference, *submissions[:1]]  # _give takes from the end
    doubtful: list[tuple[Submission, SubmissionResult, list[str]]] = []
    gate = _Gate(on_result)
    start = partial(_start, course, settings, needed)
    with _pool(start, settings.isolation, min(jobs, len(submissions))) as pool:
        first = first_seconds(settings)
        for job in pool.jobs:
            _give(job, waiting, None if waiting[-1:] == [reference] else first)
        while any(job.submission for job in pool.jobs):
            for job in _ready(pool.jobs):
                submission, result = _finish(job)
                ids = to_retry(submission, result, shared=len(pool.jobs) > 1)
                job = pool.alive(job)
                if submission is reference:
                    require_full_marks(_ask(job, reference) if ids else result)
                    gate.open()
                elif ids:
                    doubtful.append((submission, result, ids))
                else:
                    gate.report(result)
                _give(job, waiting, None if waiting[-1:] == [reference] else first)
        for submission, result, ids in doubtful:
            job = pool.alive(pool.jobs[0])
            on_result(grade_again(partial(_ask, job), submission, result, ids))


class _Gate:
    """Holds results back until the reference solutions have full marks."""

    def __init__(self, on_result: Callable[[SubmissionResult], None]) -> None:
        self._on_result = on_result
        self._held: list[SubmissionResult] | None = []

    def report(self, result: SubmissionResult) -> None:
        """Report a result if the gate is open. Otherwise hold it back."""
        if self._held is None:
            self._on_result(result)
        else:
            self._held.append(result)

    def open(self) -> None:
        """Report all results that were held back. From now on, hold nothing back."""
        held, self._held = self._held or [], None
        for result in held:
            self._on_result(result)


@dataclass
class _Pool:
    """The processes that grade.

    Attributes:
        jobs: the processes, each with its current submission.
        start: a function that starts a process on a core.
    """

    jobs: list[_Grading]
    start: Callable[[int | None], _Grading]

    def alive(self, job: _Grading) -> _Grading:
        """Return the job. If its process has ended, replace it with a new job and return that."""
        if not job.process.is_alive():
            self.jobs[self.jobs.index(job)] = job = self.start(job.core)
        return job


@contextmanager
def _pool(
    start: Callable[[Start, int | None], _Grading], isolation: Isolation, size: int
) -> Iterator[_Pool]:
    """Start processes that grade, and yield them.

    At the end of the context, wait up to 5 seconds until they exit. After an exception, kill them.
    """
    size = max(1, size)
    with reserved_cores(size) as cores, processes(isolation) as start_process:
        pool = _Pool([], partial(start, start_process))
        try:
            for core in cores:
                pool.jobs.append(pool.start(core))
            yield pool
        except BaseException:
            for job in pool.jobs:
                job.process.kill()
            raise
        finally:
            with undisturbed():
                for job in pool.jobs:
                    job.connection.close()
                for job in pool.jobs:
                    job.process.join(5)
                    job.process.kill()


def _start(
    course: Course, settings: Settings, needed: Iterable[str], start: Start, core: int | None
) -> _Grading:
    process, connection = start("grader.grade.job:serve", course, settings, needed, core)
    return _Grading(process, connection, core)


def _give(job: _Grading, waiting: list[Submission], seconds: float | None) -> None:
    if waiting:
        job.submission = waiting.pop()
        with suppress(BrokenPipeError):  # the process crashed; _finish reports this
            job.connection.send((job.submission, seconds))


def _ready(pool: list[_Grading]) -> list[_Grading]:
    busy = {job.connection: job for job in pool if job.submission}
    return [busy[connection] for connection in wait(list(busy))]  # type: ignore[index]


def _finish(job: _Grading) -> tuple[Submission, SubmissionResult]:
    """Wait for the job, and return its submission and the result.

    If the process crashed, the result has the status `internal`.
    """
    assert job.submission is not None
    submission, job.submission = job.submission, None
    try:
        answer = job.connection.recv()
    except (EOFError, OSError):
        job.process.join(5)
        answer = f"the grader's process ended with exit code {job.process.exitcode}"
    return submission, as_result(submission, answer)


def _ask(job: _Grading, submission: Submission) -> SubmissionResult:
    _give(job, [submission], None)
    return _finish(job)[1]
