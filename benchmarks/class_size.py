"""How fast a class is graded: a made-up class of any size, through the code of `grader grade`.

Of all files in the class half are right variants and half are mistakes of the catalogue, and no two
submissions are alike: in each, right files and wrong ones take turns. All of it is of part one.
With `--problem 03` the class handed in that problem alone, as for an assignment. Printed are

- submissions per minute, all in: starting, grading the reference solutions, writing the reports
- CPU seconds of all processes, for each submission and as a share of the cores' time
- the memory of the trusted processes, after a tenth of the class and after all of it
- beside it, in the same run: a fresh `python -m pytest --hidden` in each folder, for some
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

# Which of a submission's files are wrong.
KINDS = ("the odd files wrong", "the even files wrong")


def main() -> None:
    """Make a class, grade it and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=24, help="the size of the class")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="graded at a time")
    parser.add_argument("--problem", help="the only one that was handed in")
    parser.add_argument("--fresh", type=int, default=2, help="of each kind graded by pytest, too")
    options = parser.parse_args()
    if min(options.submissions, options.jobs) < 1:
        parser.error("a class has at least one submission, and one is graded at a time")
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
    """Write `size` submissions and return the kind of each; the same ones each time."""
    problems = [only] if only else course.of_part("one")
    kinds = {f"student-{n + 1:05}": KINDS[n % len(KINDS)] for n in range(size)}
    for place, problem in enumerate(problems):
        right, wrong = taken_in_turns(course, problem)
        for number, name in enumerate(kinds):
            target = folder / name / problem.id / SUBMISSION_FILE
            target.parent.mkdir(parents=True)
            target.write_bytes(next(right if (number + place) % len(KINDS) else wrong))
    return kinds


def taken_in_turns(course: Course, problem: Problem) -> tuple[Iterator[bytes], Iterator[bytes]]:
    """Return a problem's right files and its mistakes, each in an order of chance, for ever.

    A file comes again only when all others have been taken, and then in another order.
    """
    right = [path.read_bytes() for path in course.right_files(problem).values()]
    wrong = [mistake.source.encode() for mistake in mistakes_of(course, problem)]
    return in_turns(right, Random(problem.id)), in_turns(wrong, Random(problem.id))


def in_turns(files: list[bytes], chance: Random) -> Iterator[bytes]:
    """Yield the files for ever, each time in another order."""
    while True:
        yield from chance.sample(files, len(files))


def spread(kinds: dict[str, str], count: int) -> list[str]:
    """Return `count` submissions of each kind, from all over the class."""
    by_kind = [[name for name in kinds if kinds[name] == kind] for kind in KINDS]
    return [name for names in by_kind for name in names[:: max(1, len(names) // count)][:count]]


def counted(kinds: dict[str, str]) -> str:
    """Say how many there are of each kind."""
    return ", ".join(f"{count} with {kind}" for kind, count in Counter(kinds.values()).items())


# Grading it


@dataclass
class Run:
    """What grading the class took.

    Attributes:
        wall: seconds, from the first step to the last report.
        cpu: seconds of all processes.
        tenth: how many submissions are a tenth of the class, rounded up.
        memory: by number of results, the MB of each trusted process at that time.
        at: by number of results, the seconds since the start.
    """

    tenth: int
    wall: float = 0.0
    cpu: float = 0.0
    memory: dict[int, list[float]] = field(default_factory=dict)
    at: dict[int, float] = field(default_factory=dict)


def grade(course: Course, folder: Path, size: int, jobs: int, only: Problem | None) -> Run:
    """Grade the class as `grader grade` does, and watch."""
    run = Run(math.ceil(size / 10))
    started, cpu = time.monotonic(), cpu_seconds()

    def on_result(result: SubmissionResult) -> None:
        assert result.status != Status.INTERNAL, result.notes
        done = len(run.at) + 1
        run.at[done] = time.monotonic() - started
        if done in (run.tenth, size):
            run.memory[done] = [resident_mb(process) for process in trusted()]
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


def trusted() -> list[int]:
    """Return the processes of the grader that hold tests: this one, and those that grade.

    These are in the session of the process that they were forked from; what runs students' code
    has others.
    """
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    pool = [int(id) for id in descendants() if str(os.getsid(int(id))) in {*children} - {id}]
    return [os.getpid(), *pool]


def cpu_seconds() -> float:
    """Return the CPU time of this process, of those that ended, and of those that live."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    living = sum(map(_ticks, descendants())) / os.sysconf("SC_CLK_TCK")
    return time.process_time() + ended.ru_utime + ended.ru_stime + living


def _ticks(process: str) -> int:
    """Return user and system time of a process, and of its own children that ended."""
    with suppress(OSError):  # it has ended meanwhile
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:15])
    return 0


def descendants(process: str = "self") -> Iterator[str]:
    """Yield the ids of the processes that live and that this one started, or they did."""
    with suppress(OSError):  # it has ended meanwhile
        for thread in Path(f"/proc/{process}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield child
                yield from descendants(child)


def resident_mb(process: int) -> float:
    """Return the memory of a process that is in use."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


# Beside it


@dataclass
class Spent:
    """Seconds that something took."""

    wall: float
    cpu: float


def fresh(problems: list[Problem], root: Path, name: str) -> Spent:
    """Run each problem's tests in a Python of their own; `root` is a copy of the course."""
    for problem in problems:
        handed_in = root.parent / "class" / name / problem.id / SUBMISSION_FILE
        shutil.copy(handed_in, root / "problems" / problem.id)
    started, cpu = time.monotonic(), cpu_seconds()
    for problem in problems:
        assert fresh_pytest(root, [problem]) in (0, 1), "pytest did not run the tests"
    return Spent(time.monotonic() - started, cpu_seconds() - cpu)


def fresh_pytest(root: Path, problems: list[Problem]) -> int:
    """Run all tests of some problems on what is in the course at `root`; return the exit status."""
    folders = [f"problems/{problem.id}" for problem in problems]
    command = [sys.executable, "-m", "pytest", "-q", "--hidden", *folders]
    # With one thread, as the others: more would spend CPU time on waiting for each other.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, cwd=root, env=environment, check=False, stdout=subprocess.DEVNULL
    ).returncode


def copy_with_solutions(course: Course, root: Path) -> Path:
    """Copy the course into `root`, with each solution in the place of the stub."""
    for name in ("problems", "solutions"):
        shutil.copytree(course.root / name, root / name)
    for name in ("pyproject.toml", "course.toml"):
        shutil.copy(course.root / name, root)
    for problem in course.problems():
        shutil.copy(course.solution(problem), root / problem.stub.relative_to(course.root))
    return root


# What came out


def report(run: Run, size: int) -> None:
    """Print what grading took."""
    cores = default_jobs()
    print(f"  submissions per minute  {60 * size / run.wall:7.1f}   ({run.wall:.0f} s, all in)")
    if under_way := seconds_under_way(run, size):
        print(f"  after the first tenth   {60 / under_way:7.1f}")
    print(f"  CPU seconds for each    {run.cpu / size:7.2f}   ({run.cpu:.0f} s in all)")
    print(f"  CPU share of {cores:2} cores   {run.cpu / run.wall / cores:7.0%}")
    for done, sizes in run.memory.items():
        each = " + ".join(f"{size:.0f}" for size in sizes)
        print(f"  trusted MB after {done:5}   {sum(sizes):7.0f}   ({each})")


def seconds_under_way(run: Run, size: int) -> float:
    """Return the seconds for each submission after the first tenth; 0 if there were no more."""
    rest = size - run.tenth
    return (run.at[size] - run.at[run.tenth]) / rest if rest else 0.0


def report_fresh(run: Run, kinds: dict[str, str], taken: list[tuple[str, Spent]]) -> None:
    """Print what pytest took, and the ratios."""
    wall = sum(spent.wall for _, spent in taken) / len(taken)
    cpu = sum(spent.cpu for _, spent in taken) / len(taken)
    print(f"A fresh pytest for each, one at a time; {len(taken)} of them")
    for kind, spent in taken:
        print(f"  {kind:22}  {spent.wall:7.1f} s, {spent.cpu:.1f} s of CPU")
    print(f"  submissions per minute  {60 / wall:7.1f}")
    print(f"  CPU seconds for each    {cpu:7.1f}")
    size = len(kinds)
    print("How many times cheaper than a fresh pytest")
    print(f"  in CPU seconds, all in  {cpu / (run.cpu / size):7.2f}")
    print(f"  in time on the wall     {wall / (run.wall / size):7.2f}")
    if under_way := seconds_under_way(run, size):
        print(f"  after the first tenth   {wall / under_way:7.2f}")


if __name__ == "__main__":
    main()
