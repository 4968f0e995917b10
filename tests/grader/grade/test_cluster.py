"""A cluster gives the same results as one machine, even if a worker is lost."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.cli_instructor import app
from grader.course import Course
from grader.errors import InternalError, UsageError
from grader.grade import cluster
from grader.grade.class_run import grade_class
from grader.grade.cores import reserved_cores, taken_by_others
from grader.grade.pool import grade_all
from grader.grade.settings import Settings
from grader.intake.handed_in import Submission
from grader.intake.submissions import find_submissions
from grader.result import Policy, SubmissionResult
from tests.grader.intake.uploads import FILE, write

CLASS = {
    "ada": "def double(x): return x + x",
    "bob": "def double(x): return 3 * x",
    "cem": "def double(x): raise NotImplementedError",
    "dee": "def double(x: return x",
}


# Without a cluster


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory")
def test_a_dask_worker_limits_memory_while_it_grades(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    class ReadsLimit:
        def grade(self, submission: Submission, seconds: float | None) -> tuple[int, int]:
            return resource.getrlimit(resource.RLIMIT_DATA)

    before = resource.getrlimit(resource.RLIMIT_DATA)
    order = cluster._ClusterRun(None, Settings(), ())
    monkeypatch.setattr(
        cluster, "_current", cluster._GraderOfRun(order, ReadsLimit(), lambda: None)
    )
    limit, _ = cluster._grade(Submission("ada", {}), order, None)
    assert 0 < limit < 1 << 40
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_without_dask_the_command_to_install_it_is_printed(
    small_course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setattr("grader.cli.own_course", lambda: small_course)
    write_class(tmp_path / "class")
    command = ["grade", str(tmp_path / "class"), "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as stopped:
        app([*command, "--scheduler", "tcp://127.0.0.1:1"])
    assert stopped.value.code == 2
    *progress, line = capsys.readouterr().err.strip().splitlines()
    assert "pip install -e '.[cluster]'" in line
    assert "Traceback" not in "".join(progress)


@pytest.fixture
def no_client_left() -> Iterator[None]:
    """After the test, delete the objects of a dask client that could not connect.

    If the garbage collector deleted them while the thread of the next client starts, this would
    cause a deadlock.
    """
    yield
    gc.collect()


@pytest.mark.slow
@pytest.mark.usefixtures("no_client_left")
def test_an_unreachable_scheduler_is_reported(
    small_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "tcp://127.0.0.1:1"
    skip_without_dask()
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    with pytest.raises(UsageError, match=f"no dask scheduler answers at {address}"):
        cluster.grade_on_cluster([], small_course, Settings(), address, print)


class FakeFuture:
    """A future that raises an error instead of returning a result."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self) -> None:
        raise self.error


def test_a_lost_worker_is_an_internal_error_and_a_lost_scheduler_ends_the_run(
    submissions: list[Submission],
) -> None:
    skip_without_dask()
    from distributed import CancelledError
    from distributed.scheduler import KilledWorker

    future = FakeFuture(KilledWorker("grade", "a worker", 3))
    result = cluster._received(future, submissions[0])
    assert (result.submission, result.status) == ("ada", "internal")
    assert result.notes == ["the workers that graded this submission were lost several times"]
    with pytest.raises(InternalError, match="the connection to the scheduler was lost"):
        cluster._received(FakeFuture(CancelledError("grade")), submissions[0])
    with pytest.raises(InternalError, match="Is the same course"):
        cluster._received(FakeFuture(ModuleNotFoundError("grader")), submissions[0])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can keep a process on a core")
def test_two_runs_on_a_machine_share_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {2001, 2002, 2003})
    monkeypatch.setattr(os, "getpid", lambda: 2001)
    assert taken_by_others() == (0, 3)
    with reserved_cores(2) as first:
        assert first == [2001, 2002]
        assert taken_by_others() == (2, 3)
        with reserved_cores(2) as second:
            assert second == [2003, 2003]
            with reserved_cores(2) as third:
                assert third == [None, None]
    assert taken_by_others() == (0, 3)


# With a cluster


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Any]:
    """Start a dask cluster of two worker processes."""
    skip_without_dask()
    from distributed import LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**options, host="127.0.0.1") as local:
        yield local


@pytest.fixture(scope="module")
def shared_course(tmp_path_factory: pytest.TempPathFactory, new_course: Any) -> Course:
    """Write a course once for all tests of this file."""
    return new_course(tmp_path_factory.mktemp("shared") / "course")


@pytest.fixture(scope="module")
def shared_class(
    tmp_path_factory: pytest.TempPathFactory, shared_course: Course
) -> list[Submission]:
    """Return submissions to the shared course."""
    folder = tmp_path_factory.mktemp("handed in") / "class"
    write_class(folder)
    return find_submissions(folder, shared_course)


def skip_without_dask() -> None:
    pytest.importorskip("distributed", reason="needs the extra: pip install -e '.[cluster]'")


def write_class(folder: Path) -> None:
    write(folder, {f"{name}/{FILE}": source for name, source in CLASS.items()})


@pytest.fixture
def submissions(small_course: Course, tmp_path: Path) -> list[Submission]:
    write_class(tmp_path / "class")
    return find_submissions(tmp_path / "class", small_course)


def without_seconds(results: list[SubmissionResult]) -> list[dict[str, Any]]:
    for result in results:
        for problem in result.problems:
            problem.tests = [replace(test, seconds=0.0) for test in problem.tests]
    return sorted((r.to_json() for r in results), key=lambda data: data["submission"])


@pytest.mark.slow
@pytest.mark.usefixtures("lent")
def test_a_cluster_gives_the_same_results_as_one_machine(
    shared_course: Course, shared_class: list[Submission], scheduler: Any
) -> None:
    here: list[SubmissionResult] = []
    there: list[SubmissionResult] = []
    grade_all(shared_class, shared_course, Settings(), 1, here.append)
    address = scheduler.scheduler_address
    cluster.grade_on_cluster(shared_class, shared_course, Settings(), address, there.append)
    assert without_seconds(there) == without_seconds(here)
    assert [r.points for r in sorted(there, key=lambda r: r.submission)] == [4, 0, 0, 0]


@pytest.mark.slow
def test_a_lost_worker_loses_no_result(
    shared_course: Course, shared_class: list[Submission], scheduler: Any, tmp_path: Path
) -> None:
    processes = [worker.process.process.pid for worker in scheduler.workers.values()]

    def lose_a_worker(result: SubmissionResult) -> None:
        if len(processes) == 2:
            os.kill(processes.pop(), signal.SIGKILL)

    def grade() -> Any:
        return grade_class(
            shared_class,
            shared_course,
            Settings(),
            tmp_path / "out",
            jobs=1,
            policy=Policy.TITLES,
            scheduler=scheduler.scheduler_address,
            on_result=lose_a_worker,
        )

    run = grade()
    assert len(processes) == 1
    assert {r.submission: (r.status, r.points) for r in run.results} == {
        "ada": ("graded", 4),
        "bob": ("graded", 0),
        "cem": ("not_attempted", 0),
        "dee": ("graded", 0),
    }
    assert grade().graded == 0


@pytest.mark.slow
def test_workers_with_a_different_course_are_refused(
    shared_course: Course,
    shared_class: list[Submission],
    scheduler: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = dict(cluster._versions(shared_course))
    address = scheduler.scheduler_address
    for what in ("the course", "Python", "torch"):
        here = own | {what: "another"}
        monkeypatch.setattr(cluster, "_versions", lambda _, here=here: tuple(here.items()))
        with pytest.raises(UsageError, match=f"^the worker on .* differs .* in: {what}"):
            cluster.grade_on_cluster(shared_class, shared_course, Settings(), address, print)


@pytest.mark.slow
def test_workers_on_which_the_solution_fails_are_refused(
    small_course: Course, submissions: list[Submission], scheduler: Any
) -> None:
    small_course.solution(small_course.problems()[0]).unlink()
    settings, address = Settings(isolation="process"), scheduler.scheduler_address
    with pytest.raises(InternalError, match="the reference solution of 01-doubling fails"):
        cluster.grade_on_cluster(submissions, small_course, settings, address, print)
