"""How fast a class is graded: a made-up class of any size, through the code of `grader grade`.

Most of the class is right, each in a style of its own; some made one of the catalogue's mistakes,
some did not get beyond the second problem; all of it in part one. With `--problem 03` the class
handed in that problem alone, as for an assignment, and some not at all. Printed are

- submissions per minute, all in: starting, grading the reference solutions, writing the reports
- the share of the cores' time that was used, by the CPU time of all processes
- the memory of the trusted processes, after a tenth of the class and after all of it
- beside it, in the same run: a fresh `python -m pytest --hidden` for one submission of each kind

Run it with `python benchmarks/class_size.py --submissions 100`; Linux only.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from boundary import copy_with_solutions, cpu_seconds, fresh_pytest

from grader.course import SUBMISSION_FILE, Course, Problem, own_course
from grader.grading.class_run import grade_class
from grader.grading.settings import Settings, default_jobs
from grader.intake.submissions import find_submissions
from grader.result import Part, Policy, Status, SubmissionResult
from grader.testing.edits import mistakes_of, right_files

RIGHT, MISTAKEN, BEGUN = "all right", "one mistake", "partly done"
# Of eight neighbours in the class.
MIXTURE = (RIGHT, RIGHT, MISTAKEN, RIGHT, BEGUN, RIGHT, MISTAKEN, RIGHT)


def main() -> None:
    """Make a class, grade it and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=24, help="the size of the class")
    parser.add_argument("--jobs", type=int, default=default_jobs(), help="graded at a time")
    parser.add_argument("--problem", help="the only one that was handed in")
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
        problems = [only] if only else course.of_part(Part.ONE)
        report_fresh(run, kinds, {k: fresh(problems, solved, n) for n, k in first(kinds).items()})


# The class


def make_class(course: Course, folder: Path, size: int, only: Problem | None) -> dict[str, str]:
    """Write `size` submissions and return the kind of each; the same ones each time."""
    problems = [only] if only else course.of_part(Part.ONE)
    kinds = {f"student-{n + 1:05}": MIXTURE[n % len(MIXTURE)] for n in range(size)}
    chance = random.Random(0)
    for name, kind in kinds.items():
        for problem, source in sources(course, problems, kind, chance).items():
            target = folder / name / problem.id / SUBMISSION_FILE
            target.parent.mkdir(parents=True)
            target.write_bytes(source)
    return kinds


def sources(
    course: Course, problems: list[Problem], kind: str, chance: random.Random
) -> dict[Problem, bytes]:
    """Choose the file of each problem for a submission of that kind."""
    files = {}
    for problem in problems:
        files[problem] = chance.choice([*right_files(course, problem).values()]).read_bytes()
    if kind == MISTAKEN:
        problem = chance.choice(problems)
        files[problem] = chance.choice(mistakes_of(course, problem)).source.encode()
    if kind == BEGUN:
        done = 0 if len(problems) == 1 else 2
        files |= {problem: problem.original.read_bytes() for problem in problems[done:]}
    return files


def counted(kinds: dict[str, str]) -> str:
    """Say how many there are of each kind."""
    return ", ".join(f"{count} {kind}" for kind, count in Counter(kinds.values()).items())


def first(kinds: dict[str, str]) -> dict[str, str]:
    """Return the first submission of each kind, with the kind."""
    return {name: kind for kind, name in {k: n for n, k in reversed(kinds.items())}.items()}


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
        find_submissions([folder / "class"], course, only),
        course,
        Settings(isolation="sandbox"),
        folder / "reports",
        jobs=jobs,
        policy=Policy.TITLES,
        on_result=on_result,
    )
    multiprocessing.active_children()  # collects those that ended, and their CPU time
    run.wall, run.cpu = time.monotonic() - started, cpu_seconds() - cpu
    return run


def trusted() -> list[int]:
    """Return the processes of the grader that hold tests: this one, and those that grade."""
    pool = sorted(process.pid or 0 for process in multiprocessing.active_children())
    return [os.getpid(), *pool]


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
    """Run all tests on a submission in a Python of its own; `root` is a copy of the course."""
    for problem in problems:
        handed_in = root.parent / "class" / name / problem.id / SUBMISSION_FILE
        shutil.copy(handed_in, root / "problems" / problem.id)
    started, cpu = time.monotonic(), cpu_seconds()
    assert fresh_pytest(root, problems) in (0, 1), "pytest did not run the tests"
    return Spent(time.monotonic() - started, cpu_seconds() - cpu)


# What came out


def report(run: Run, size: int) -> None:
    """Print what grading took."""
    cores = default_jobs()
    print(f"  submissions per minute  {60 * size / run.wall:7.1f}   ({run.wall:.0f} s, all in)")
    if under_way := seconds_under_way(run, size):
        print(f"  after the first tenth   {60 / under_way:7.1f}")
    print(f"  CPU seconds for each    {run.cpu / size:7.1f}")
    print(f"  CPU share of {cores:2} cores   {run.cpu / run.wall / cores:7.0%}")
    for done, sizes in run.memory.items():
        each = " + ".join(f"{size:.0f}" for size in sizes)
        print(f"  trusted MB after {done:5}   {sum(sizes):7.0f}   ({each})")


def seconds_under_way(run: Run, size: int) -> float:
    """Return the seconds for each submission after the first tenth; 0 if there were no more."""
    rest = size - run.tenth
    return (run.at[size] - run.at[run.tenth]) / rest if rest else 0.0


def report_fresh(run: Run, kinds: dict[str, str], taken: dict[str, Spent]) -> None:
    """Print what pytest took, each kind weighted by its share of the class, and the ratios."""
    shares = {kind: count / len(kinds) for kind, count in Counter(kinds.values()).items()}
    wall = sum(taken[kind].wall * share for kind, share in shares.items())
    cpu = sum(taken[kind].cpu * share for kind, share in shares.items())
    print("A fresh pytest for each, one at a time")
    for kind, spent in taken.items():
        print(f"  {kind:22}  {spent.wall:7.1f} s, {spent.cpu:.1f} s of CPU")
    print(f"  submissions per minute  {60 / wall:7.1f}")
    print(f"  CPU seconds for each    {cpu:7.1f}")
    size = len(kinds)
    print("The grader : a fresh pytest")
    print(f"  submissions per minute  {wall / (run.wall / size):7.2f}")
    if under_way := seconds_under_way(run, size):
        print(f"  after the first tenth   {wall / under_way:7.2f}")
    print(f"  CPU seconds for each    {run.cpu / size / cpu:7.2f}")


if __name__ == "__main__":
    main()
