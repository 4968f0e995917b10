"""Grade on the workers of a dask scheduler, on several machines.

Each worker process has a separate sandbox and grades submissions in the same way as `pool`. Before
the first submission, a worker checks that it has the same course and grader as this machine, and
that the reference solutions get full marks. If a worker is lost, another worker grades its
submission. If a submission loses several workers, its result gets the status `internal`, as for any
error of the grader.
"""

from __future__ import annotations

import logging
import platform
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.course import Course, own_course
from grader.errors import CourseError, InternalError, UsageError
from grader.grade.cores import reserved_cores
from grader.grade.outcome import as_result
from grader.grade.provenance import grader_sha256, torch_version
from grader.grade.reference import reference_submission, require_full_marks
from grader.grade.retries import first_seconds, grade_again, to_retry
from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.result import SubmissionResult

if TYPE_CHECKING:
    from grader.grade.submission import Grader

CONNECT_SECONDS = 10.0
"""The time limit for connecting to the scheduler."""


def grade_on_cluster(
    submissions: Sequence[Submission],
    course: Course,
    settings: Settings,
    address: str,
    on_result: Callable[[SubmissionResult], None],
) -> None:
    """Grade `submissions` as `pool.grade_all` does, on the workers of a cluster.

    Args:
        submissions: the submissions, in any order. All problems in their `files` are graded.
        course: the course with the tests. The workers need the same course.
        settings: seed, limits and level of isolation.
        address: the scheduler's address, such as `tcp://10.0.0.1:8786`.
        on_result: called once for each submission.

    Raises:
        UsageError: dask is not installed, the scheduler does not answer or has no workers, or a
            worker differs from this machine in the course, the grader, Python or torch.
        InternalError: a worker can't grade, or the connection was lost.
    """
    doubtful: list[tuple[Submission, SubmissionResult, list[str]]] = []
    run = _ClusterRun.of(course, settings)
    with _connected(address) as client:
        from distributed import as_completed

        def grade(submission: Submission) -> SubmissionResult:
            future = client.submit(_grade, submission, run, None, pure=False)
            return _received(future, submission)

        first = first_seconds(settings)
        futures = client.map(_grade, submissions, run=run, seconds=first, pure=False)
        asked = dict(zip(futures, submissions, strict=True))
        for future in as_completed(list(asked)):
            submission = asked.pop(future)
            result = _received(future, submission)
            ids = to_retry(submission, result, shared=True)
            if ids:
                doubtful.append((submission, result, ids))
            else:
                on_result(result)
        for submission, result, ids in doubtful:
            on_result(grade_again(grade, submission, result, ids))


# On this machine


@dataclass(frozen=True)
class _ClusterRun:
    """The data that a worker needs in addition to a submission.

    Attributes:
        root: the course's folder; None for the course that contains the worker's grader.
        settings: seed, limits and level of isolation.
        needed: the return value of `_versions` on the client's machine. It must be the same on
            the workers' machines.
    """

    root: Path | None
    settings: Settings
    needed: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, course: Course, settings: Settings) -> _ClusterRun:
        root = None if course == own_course() else course.root
        return cls(root, settings, _versions(course))


def _versions(course: Course) -> tuple[tuple[str, str], ...]:
    """Return (name, version) pairs of the software on which marks depend."""
    return (
        ("the course", grader_sha256(course)),
        ("Python", platform.python_version()),
        ("torch", torch_version()),
    )


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    """Yield a client of the scheduler at this address. The scheduler must have workers."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise UsageError(
            "--scheduler needs dask: run pip install -e '.[cluster]' in the course's folder"
        ) from None
    # Errors are reported in a sentence, so hide dask's tracebacks.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        _require_listener(address)
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"no dask scheduler answers at {address}: {error}") from None
    with client:
        if not client.nthreads():
            raise UsageError(f"the scheduler at {address} has no workers; start some first")
        yield client


def _require_listener(address: str) -> None:
    """Check that a TCP address accepts connections. Without this check, dask might wait forever.

    Raises:
        OSError: the address does not accept connections.
    """
    match = re.fullmatch(r"(?:tcp://)?([\w.-]+):(\d+)", address)
    if match:
        host, port = match[1], int(match[2])
        socket.create_connection((host, port), CONNECT_SECONDS).close()


def _received(future: Any, submission: Submission) -> SubmissionResult:
    """Wait for the result of a submission.

    If several workers were lost while they graded it, return a result with the status `internal`.
    """
    from distributed import CancelledError
    from distributed.scheduler import KilledWorker

    try:
        return as_result(submission, future.result())
    except KilledWorker:
        return as_result(
            submission, "the workers that graded this submission were lost several times"
        )
    except (UsageError, InternalError):
        raise
    except CancelledError:
        raise InternalError(
            "the connection to the scheduler was lost; run the same command with another scheduler "
            "to continue"
        ) from None
    except Exception as error:
        raise InternalError(
            f"a worker can't grade ({type(error).__name__}: {error}). "
            "Is the same course installed there?"
        ) from None


# Functions that run on a worker's machine


@dataclass
class _GraderOfRun:
    """The grader of a worker process for one run."""

    run: _ClusterRun
    grader: Grader
    close: Callable[[], None]


_current: _GraderOfRun | None = None
# pytest runs in the worker's process, so only one thread may grade at a time.
_grading_lock = threading.Lock()


def _grade(
    submission: Submission, run: _ClusterRun, seconds: float | None
) -> SubmissionResult | str:
    """Grade one submission in a worker. `seconds` limits all calls of its code."""
    # Imported here, because it loads torch, which only workers need.
    from grader.grade.job import answer, memory_limit

    global _current
    with _grading_lock:
        if _current is None or _current.run != run:
            if _current is not None:
                _current.close()
                _current = None
            _current = _start_grader(run)
        with memory_limit():
            return answer(submission, _current.grader, seconds)


def _start_grader(run: _ClusterRun) -> _GraderOfRun:
    """Start a sandbox, and check that this worker gives the same marks as the client's machine."""
    from grader.grade.job import answer, grader_for

    host = socket.gethostname()
    course = Course(run.root) if run.root else own_course()
    wrong = [name for name, value in run.needed if dict(_versions(course))[name] != value]
    if wrong:
        raise UsageError(
            f"the worker on {host} differs from this machine in: {' and '.join(wrong)}. "
            "Install the same versions on all machines, and restart the workers"
        )
    with ExitStack() as stack:
        try:
            (core,) = stack.enter_context(reserved_cores(1))
            grader = stack.enter_context(grader_for(course, run.settings, core))
            reference = reference_submission(course)
            require_full_marks(as_result(reference, answer(reference, grader)))
        except (InternalError, CourseError) as error:
            raise InternalError(f"the worker on {host} can't grade: {error}") from None
        return _GraderOfRun(run, grader, stack.pop_all().close)
