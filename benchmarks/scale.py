"""Whether a large class costs as much for its last submissions as for its first ones.

A class as `class_size.py` makes it, all problems handed in, is graded by the code of
`grader grade`: on this machine, and with `--dask` also by a cluster of dask's on this machine, one
worker process for each job. At every tenth of the class are printed

- the CPU seconds of all processes for each submission since the line before
- the memory of all processes together, where a page that several share counts once (PSS)
- the memory in use of the process that leads, and of the largest of the others (RSS)

and in the end how the last tenth compares with the second one: the first has the start in it.

Run it with `python benchmarks/scale.py --submissions 1000 --dask`; Linux only.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from boundary import cpu_seconds, descendants
from class_size import make_class, resident_mb

from grader.course import Course, own_course
from grader.grade.class_run import grade_class
from grader.grade.settings import Settings, default_jobs
from grader.intake.submissions import find_submissions
from grader.result import Policy, Status, SubmissionResult

_PARTS = 10


def main() -> None:
    """Make a class, grade it each way and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=150, help="the size of the class")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="graded at a time")
    parser.add_argument("--problem", help="the only one that was handed in")
    parser.add_argument("--dask", action="store_true", help="also with workers of dask's")
    options = parser.parse_args()
    if options.submissions < _PARTS or options.jobs < 1:
        parser.error(f"at least {_PARTS} submissions, and one graded at a time")
    course = own_course()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        only = course.select([options.problem])[0] if options.problem else None
        make_class(course, root / "class", options.submissions, only)
        run(f"{options.jobs} jobs here", course, root, "here", options)
        if options.dask:
            with local_cluster(options.jobs) as address:
                run(f"{options.jobs} workers of dask's", course, root, "dask", options, address)


@dataclass
class Sample:
    """What had been used when so many submissions were graded.

    Attributes:
        done: how many.
        wall: seconds since the start.
        cpu: seconds of all processes.
        memory: MB of all processes.
        leads: MB of this process.
        largest: MB of the largest of the others.
    """

    done: int
    wall: float
    cpu: float
    memory: float
    leads: float
    largest: float


def run(
    title: str,
    course: Course,
    root: Path,
    out: str,
    options: argparse.Namespace,
    scheduler: str = "",
) -> None:
    """Grade the class and print what it took."""
    only = course.select([options.problem])[0] if options.problem else None
    size, samples = options.submissions, [sample(0, 0.0, 0.0)]
    every, started, cpu = math.ceil(size / _PARTS), time.monotonic(), cpu_seconds()
    print(f"{size} submissions, {title}")
    print("  graded  s/min   CPU s each  all MB  leads MB  largest MB", flush=True)
    count = 0

    def on_result(result: SubmissionResult) -> None:
        nonlocal count
        assert result.status != Status.INTERNAL, result.notes
        count += 1
        if count % every == 0 or count == size:
            samples.append(sample(count, time.monotonic() - started, cpu_seconds() - cpu))
            print(line(*samples[-2:]), flush=True)

    grade_class(
        find_submissions([root / "class"], course, only),
        course,
        Settings(),
        root / out,
        jobs=options.jobs,
        policy=Policy.TITLES,
        scheduler=scheduler,
        on_result=on_result,
    )
    compare(samples)


def sample(done: int, wall: float, cpu: float) -> Sample:
    """Look at all processes."""
    others = [*descendants()]
    memory = sum(proportional_mb(process) for process in ["self", *others])
    largest = max((_resident(process) for process in others), default=0.0)
    return Sample(done, wall, cpu, memory, resident_mb(os.getpid()), largest)


def _resident(process: str) -> float:
    with suppress(OSError):  # it has ended
        return resident_mb(int(process))
    return 0.0


def proportional_mb(process: str) -> float:
    """Return the memory of a process, of what it shares with others its part."""
    with suppress(OSError):
        for text in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if text.startswith("Pss:"):
                return int(text.split()[1]) / 1024
    return 0.0


def line(before: Sample, now: Sample) -> str:
    """Return what was used between two samples."""
    each = (now.cpu - before.cpu) / (now.done - before.done)
    speed = 60 * (now.done - before.done) / (now.wall - before.wall)
    memory = f"{now.memory:6.0f}  {now.leads:8.0f}  {now.largest:10.0f}"
    return f"  {now.done:6}  {speed:5.0f}  {each:10.2f}  {memory}"


def compare(samples: list[Sample]) -> None:
    """Print how the last part of the class compares with the second one."""
    early, late = samples[1:3], samples[-2:]
    costs = [(b.cpu - a.cpu) / (b.done - a.done) for a, b in (early, late)]
    print(f"  the last part's CPU time is {costs[1] / costs[0]:.2f} times that of the second part")
    print(f"  memory at the end is {late[1].memory / early[1].memory:.2f} times as much")
    print(f"  all in all {samples[-1].cpu:.0f} CPU seconds in {samples[-1].wall:.0f}")


@contextmanager
def local_cluster(size: int) -> Iterator[str]:
    """Start a scheduler and so many worker processes on this machine; give the address."""
    os.environ["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"  # as docs/cluster.md has it
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=size,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
    ) as cluster:
        yield cluster.scheduler_address


if __name__ == "__main__":
    main()
