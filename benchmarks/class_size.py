"""Measure how fast `grader grade` grades a generated class of any size.

Half of the files in the class are correct variants, and half are known mistakes. They alternate
within each submission. All submissions are different. They contain the problems of part one, or
only problem 03 with `--problem 03`. The script prints

- submissions per minute, including startup, grading of the reference solutions, and reports
- CPU seconds of all processes, per submission and as a share of the time of all cores
- the memory of the trusted processes, after a tenth of the class and after the whole class
- for comparison, the time of a new `python -m pytest --hidden` in each folder, for some
  submissions of each kind

Run it with `python benchmarks/class_size.py --submissions 60`; Linux only.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from grader.course import SUBMISSION_FILE, Course, Problem, own_course
from grader.diagnose.edits import mistakes_of
from grader.grade.class_run import grade_class
from grader.grade.settings import Settings, default_jobs
from grader.intake.submissions import find_submissions
from grader.result import Isolation, Policy, Status, SubmissionResult

# The kinds of submissions. Each says which of a submission's files are wrong.
KINDS = ("the odd files wrong", "the even files wrong")


def main() -> None:
    """Generate a class, grade it and print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=24, help="number of submissions")
    parser.add_argument(
        "--jobs", type=int, default=default_jobs(), help="number of submissions graded at once"
    )
    parser.add_argument("--problem", help="generate only files of this problem")
    parser.add_argument(
        "--fresh", type=int, default=2, help="also test this many of each kind by pytest"
    )
    options = parser.parse_args()
    if min(options.submissions, options.jobs) < 1:
        parser.error("--submissions and --jobs must be at least 1")
    course = own_course()
    only = course.select([options.problem])[0] if options.problem else None
    with tempfile.TemporaryDirectory() as folder:
        kinds = make_class(course, Path(folder) / "class", options.submissions, only)
        run = grade(course, Path(folder), options.submissions, options.jobs, only)
        print(f"{len(kinds)} submissions: {counted(kinds)}; {options.jobs} at a time")
        report(run, options.submissions)
        solved = copy_with_solutions(course, Path(folder) / "course")
        problems = [only] if only else course.of_part("one")
        if options.fresh:
            chosen = spread(kinds, options.fresh)
            taken = [(kinds[name], fresh(problems, solved, name)) for name in chosen]
            report_fresh(run, kinds, taken)


# The class


def make_class(course: Course, folder: Path, size: int, only: Problem | None) -> dict[str, str]:
    """Write `size` submissions, the same in each run, and return their kinds by name."""
    problems = [only] if only else course.of_part("one")
    kinds = {f"student-{n + 1:05}": KINDS[n % len(KINDS)] for n in range(size)}
    for place, problem in enumerate(problems):
        right, wrong = shuffled_files(course, problem)
        for number, name in enumerate(kinds):
            target = folder / name / problem.id / SUBMISSION_FILE
            target.parent.mkdir(parents=True)
            target.write_bytes(next(right if (number + place) % len(KINDS) else wrong))
    return kinds


def shuffled_files(course: Course, problem: Problem) -> tuple[Iterator[bytes], Iterator[bytes]]:
    """Return endless iterators over a problem's correct files and over its mistakes."""
    right = [path.read_bytes() for path in course.right_files(problem).values()]
    wrong = [mistake.source.encode() for mistake in mistakes_of(course, problem)]
    return shuffled(right, Random(problem.id)), shuffled(wrong, Random(problem.id))


def shuffled(files: list[bytes], random: Random) -> Iterator[bytes]:
    """Yield all files in random order, then all again in another order, without end."""
    while True:
        yield from random.sample(files, len(files))


def spread(kinds: dict[str, str], count: int) -> list[str]:
    """Return about `count` submissions of each kind, spread evenly over the class."""
    by_kind = [[name for name in kinds if kinds[name] == kind] for kind in KINDS]
    return [name for names in by_kind for name in names[:: max(1, len(names) // count)][:count]]


def counted(kinds: dict[str, str]) -> str:
    """Return the number of submissions of each kind, as text."""
    return ", ".join(f"{count} with {kind}" for kind, count in Counter(kinds.values()).items())


# Grading it


@dataclass
class Run:
    """Measurements of the grading of the class.

    Attributes:
        wall: seconds from the start to the last report.
        cpu: CPU seconds of all processes.
        tenth: a tenth of the number of submissions, rounded up.
        memory: MB of each trusted process, by the number of results so far.
        at: seconds from the start to each result, by the number of results so far.
    """

    tenth: int
    wall: float = 0.0
    cpu: float = 0.0
    memory: dict[int, list[float]] = field(default_factory=dict)
    at: dict[int, float] = field(default_factory=dict)


def grade(course: Course, folder: Path, size: int, jobs: int, only: Problem | None) -> Run:
    """Grade the class as `grader grade` does, and measure time and memory."""
    run = Run(math.ceil(size / 10))
    started, cpu = time.monotonic(), cpu_seconds()

    def on_result(result: SubmissionResult) -> None:
        assert result.status != Status.INTERNAL, result.notes
        done = len(run.at) + 1
        run.at[done] = time.monotonic() - started
        if done in (run.tenth, size):
            run.memory[done] = [resident_mb(process) for process in trusted_processes()]
        print(f"\r{done} of {size}", end="\n" if done == size else "", file=sys.stderr, flush=True)

    grade_class(
        find_submissions(folder / "class", course, only),
        course,
        Settings(isolation=Isolation.SANDBOX),
        folder / "reports",
        jobs=jobs,
        policy=Policy.TITLES,
        on_result=on_result,
    )
    run.wall, run.cpu = time.monotonic() - started, cpu_seconds() - cpu
    return run


def trusted_processes() -> list[int]:
    """Return the ids of the trusted processes: this process, and those that grade.

    The processes that grade are in the session of the process that forked them. The processes
    that run students' code have sessions of their own.
    """
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    pool = [int(id) for id in descendants() if str(os.getsid(int(id))) in {*children} - {id}]
    return [os.getpid(), *pool]


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all its descendants, also those that ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = sum(map(_ticks, descendants())) / os.sysconf("SC_CLK_TCK")
    return time.process_time() + ended.ru_utime + ended.ru_stime + living


def _ticks(process: str) -> int:
    """Return the clock ticks used by a process and by its children that ended."""
    with suppress(OSError):  # the process has ended in the meantime
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:15])
    return 0


def descendants(process: str = "self") -> Iterator[str]:
    """Yield the ids of the running children of a process, and of their running descendants."""
    with suppress(OSError):  # the process has ended in the meantime
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield child
                yield from descendants(child)


def resident_mb(process: int) -> float:
    """Return the resident memory of a process in MB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


# Comparison with pytest


@dataclass
class Spent:
    """Wall time and CPU time in seconds."""

    wall: float
    cpu: float


def fresh(problems: list[Problem], root: Path, name: str) -> Spent:
    """Run the tests of each problem on a submission, with a new Python process for each problem.
    `root` is a copy of the course, and `name` is the submission.
    """
    for problem in problems:
        handed_in = root.parent / "class" / name / problem.id / SUBMISSION_FILE
        shutil.copy(handed_in, root / "problems" / problem.id)
    started, cpu = time.monotonic(), cpu_seconds()
    for problem in problems:
        assert fresh_pytest(root, [problem]) in (0, 1), "pytest did not run the tests"
    return Spent(time.monotonic() - started, cpu_seconds() - cpu)


def fresh_pytest(root: Path, problems: list[Problem]) -> int:
    """Run all tests of some problems in the course at `root`, and return the exit status."""
    folders = [f"problems/{problem.id}" for problem in problems]
    command = [sys.executable, "-m", "pytest", "-q", "--hidden", *folders]
    # Use one thread, as the grader does. More threads would waste CPU time waiting for each other.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=root, env=environment, check=False, stdout=subprocess.DEVNULL
    ).returncode


def copy_with_solutions(course: Course, root: Path) -> Path:
    """Copy the course into `root`, and replace each stub by the solution."""
    for name in ("problems", "solutions"):
        shutil.copytree(course.root / name, root / name)
    for name in ("pyproject.toml", "course.toml"):
        shutil.copy(course.root / name, root)
    for problem in course.problems():
        shutil.copy(course.solution(problem), root / problem.stub.relative_to(course.root))
    return root


# Results


def report(run: Run, size: int) -> None:
    """Print the measurements of the grading."""
    cores = default_jobs()
    print(
        f"  submissions per minute  {60 * size / run.wall:7.1f}   ({run.wall:.0f} s with startup)"
    )
    if under_way := seconds_under_way(run, size):
        print(f"  after the first tenth   {60 / under_way:7.1f}")
    print(f"  CPU seconds for each    {run.cpu / size:7.2f}   ({run.cpu:.0f} s in all)")
    print(f"  CPU share of {cores:2} cores   {run.cpu / run.wall / cores:7.0%}")
    for done, sizes in run.memory.items():
        each = " + ".join(f"{size:.0f}" for size in sizes)
        print(f"  trusted MB after {done:5}   {sum(sizes):7.0f}   ({each})")


def seconds_under_way(run: Run, size: int) -> float:
    """Return the seconds per submission after the first tenth, or 0 without such submissions."""
    rest = size - run.tenth
    return (run.at[size] - run.at[run.tenth]) / rest if rest else 0.0


def report_fresh(run: Run, kinds: dict[str, str], taken: list[tuple[str, Spent]]) -> None:
    """Print the time of pytest, and how many times faster the grader is."""
    wall = sum(spent.wall for _, spent in taken) / len(taken)
    cpu = sum(spent.cpu for _, spent in taken) / len(taken)
    print(f"A new pytest process for each problem of {len(taken)} submissions, one at a time")
    for kind, spent in taken:
        print(f"  {kind:22}  {spent.wall:7.1f} s, {spent.cpu:.1f} s of CPU")
    print(f"  submissions per minute  {60 / wall:7.1f}")
    print(f"  CPU seconds for each    {cpu:7.1f}")
    size = len(kinds)
    print("The grader is this many times faster than pytest")
    print(f"  in CPU seconds          {cpu / (run.cpu / size):7.2f}")
    print(f"  in wall time            {wall / (run.wall / size):7.2f}")
    if under_way := seconds_under_way(run, size):
        print(f"  after the first tenth   {wall / under_way:7.2f}")


if __name__ == "__main__":
    main()
