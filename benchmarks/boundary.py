"""What the boundary costs: CPU time of grading the reference solutions, all tests of one part.

Part one is what `grader/boundary/README.md` tells of; `--part two` measures the other problems.

Five ways to run the same tests take turns, so that other load on the machine meets all alike. All
run on one core, as each job of `grader grade` does, unless `--any-core` is given:

- across the boundary: what `grader grade` does with a submission, workers' CPU time included
- in process: the same tests in a warm process, with the watch for forbidden functions
- in process, unwatched: the same again, where forbidden functions would go unnoticed
- a fresh pytest: `python -m pytest --hidden` in each problem's folder, as students run it and as
  graders do that start pytest for each file
- one fresh pytest: the same once, from the course's folder

Prints the median of each and the ratios. Run it with `make bench`; Linux only.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from grader.course import Course, Problem, own_course
from grader.grade.job import grader_for
from grader.grade.reference import reference_submission
from grader.grade.settings import Settings
from grader.grade.submission import Grader
from grader.intake.handed_in import Submission
from grader.run.local_files import LocalFiles
from grader.run.session import Session
from grader.run.suite import Suite

ACROSS = "across the boundary"
WATCHED = "in process"
UNWATCHED = "in process, unwatched"
FRESH, ONE_FRESH = "a fresh pytest", "one fresh pytest"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each way takes its turn")
    parser.add_argument("--part", default="one", help="whose tests; one by default")
    parser.add_argument("--any-core", action="store_true", help="leave it to the system where")
    arguments = parser.parse_args()
    core = None if arguments.any_core else min(os.sched_getaffinity(0))
    course = own_course()
    problems = course.of_part(arguments.part)
    if not problems:
        parser.error(f"this course has no part {arguments.part}")
    course = course.only_with(problems)
    submission = reference_submission(course)
    suite = Suite(problems, course.root)
    with (
        grader_for(course, Settings(), core) as grader,
        tempfile.TemporaryDirectory() as folder,
    ):
        solved = copy_with_solutions(course, Path(folder) / "course")
        ways: dict[str, Callable[[], object]] = {
            WATCHED: lambda: in_process(course, suite, watch=True),
            UNWATCHED: lambda: in_process(course, suite, watch=False),
            ACROSS: lambda: across(submission, grader),
            FRESH: lambda: [fresh(solved, [problem]) for problem in problems],
            ONE_FRESH: lambda: fresh(solved, problems),
        }
        report(measure(ways, arguments.rounds))


# The five ways. Each makes sure that it did run the tests.


def across(submission: Submission, grader: Grader) -> None:
    """Grade the submission as `grader grade` does."""
    result = grader.grade(submission)
    assert all(problem.points == problem.max > 0 for problem in result.problems)


def in_process(course: Course, suite: Suite, *, watch: bool) -> None:
    """Run the tests on the solutions in this process."""
    session = Session(LocalFiles(course.solution), hidden=True, watch=watch)
    suite.run(session)
    assert all(result.passed for result in session.results.values())


def fresh(root: Path, problems: list[Problem]) -> None:
    """Run the tests of some problems in a Python of their own; `root` holds the solutions."""
    assert fresh_pytest(root, problems) == 0


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


# Measuring


def measure(ways: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the CPU seconds of each way's turns; a first turn warms up and doesn't count."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, way in ways.items():
            started = cpu_seconds()
            way()
            spent = cpu_seconds() - started
            if turn:
                seconds[name].append(spent)
        print(f"round {turn} of {rounds}", file=sys.stderr)
    return seconds


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


def report(seconds: dict[str, list[float]]) -> None:
    """Print the medians and what they come to."""
    print("CPU seconds for one submission, all tests of the part, workers included")
    for name, values in seconds.items():
        low, high = min(values), max(values)
        print(f"  {name:22} {statistics.median(values):6.2f}   ({low:.2f} to {high:.2f})")
    for name in (WATCHED, UNWATCHED, FRESH, ONE_FRESH):
        # Neighbours in time met the same load, so ratios are taken turn by turn.
        ratios = [a / b for a, b in zip(seconds[ACROSS], seconds[name], strict=True)]
        print(f"  {ACROSS} : {name} = {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
