"""Measure the time from a save to the report: `grader watch` compared with a new pytest process.

    uv run python benchmarks/watch.py [PROBLEM]

Both test the same file in a released copy of the course. They run alternately, so that other load
on the machine affects both. The time ends when the whole report is printed.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from grader.author.release import release
from grader.course import Course, own_course

ROUNDS = 7
WATCH = "from grader.cli import app; app()"


def main() -> None:
    """Measure and print both times and their ratio."""
    course = own_course()
    problem = course.select(sys.argv[1:2] or ["01"])[0]
    with tempfile.TemporaryDirectory() as temporary:
        copy = Course(Path(temporary) / "course")
        release(course, copy.root)
        times = measure(copy, problem.id, course.solution(problem))
    watched, cold = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{problem.id}, solved, median of {ROUNDS}:")
    print(f"  a save under grader watch  {watched:6.2f} s")
    print(f"  a new python -m pytest     {cold:6.2f} s")
    print(f"  ratio                      {cold / watched:6.1f}")


def measure(copy: Course, id: str, solution: Path) -> list[tuple[float, float]]:
    """Return for each round the seconds of `grader watch` and of a new pytest process."""
    folder = copy.root / "problems" / id
    environment = os.environ | {"PYTHONPATH": str(copy.root), "PYTHONUNBUFFERED": "1"}
    watch = subprocess.Popen(
        [sys.executable, "-c", WATCH, "watch", id],
        cwd=copy.root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        wait_for_report(watch)  # the first report, which is about all problems
        times = []
        for _ in range(ROUNDS):
            time.sleep(1)  # as between two saves of a student
            started = time.perf_counter()
            shutil.copy(solution, folder / "problem.py")
            wait_for_report(watch)
            saved = time.perf_counter()
            cold = [sys.executable, "-m", "pytest"]
            subprocess.run(cold, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
            times.append((saved - started, time.perf_counter() - saved))
        return times
    finally:
        watch.terminate()


def wait_for_report(watch: subprocess.Popen[str]) -> None:
    """Read until the last line of a report: the progress in the last problem."""
    assert watch.stdout is not None
    for line in watch.stdout:
        if line.startswith("05-") and " of " in line:
            return
    raise SystemExit("grader watch has ended")


if __name__ == "__main__":
    main()
