"""What a start costs: CPU time of the grader's commands, in imports of torch.

All processes of a command count, user and system time. Beside each other in one run, in turns, so
that other load on the machine meets all alike:

- `python -c "import torch"`, which is the unit
- `grader grade ONE` with the reference solutions of a part as the only submission: until its first
  test begins, and the whole of it
- the same again, when nothing is left to do
- `grader replay` of one test
- `grader doctor`

They run on a copy of the course whose first test notes the time. Prints medians and ratios. Run it
with `make bench-start` or `python benchmarks/start.py`; Linux only.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from grader.course import Course, Problem, own_course

GRADER = [sys.executable, "-c", "from grader.cli import app; app()"]
UNIT = "import torch"
FIRST, WHOLE, NOTHING = "grade ONE, to its first test", "grade ONE", "grade, nothing to do"
REPLAY, DOCTOR = "replay of one test", "doctor"

# What the first test does before all else: it adds up the CPU time of the command's processes.
NOTE = """
import os as _os
from pathlib import Path as _Path


def _ticks(process):
    try:
        fields = _Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        children = _Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) + sum(map(_ticks, children))


def _note():
    note = _Path(NOTE)
    if not note.exists():
        command = _Path(NOTE + ".command").read_text()
        note.write_text(str(_ticks(command) / _os.sysconf("SC_CLK_TCK")))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each takes its turn")
    parser.add_argument("--part", default="one", help="one by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        course, test = copied(own_course(), folder, options.part)
        seconds: dict[str, list[float]] = {}
        for turn in range(options.rounds + 1):
            for name, spent in one_round(course, test, folder).items():
                if turn:  # the first one warms up
                    seconds.setdefault(name, []).append(spent)
            print(f"round {turn} of {options.rounds}", file=sys.stderr)
    report(seconds)


# What is measured


def copied(course: Course, folder: Path, part: str) -> tuple[Course, str]:
    """Copy the course into a folder, with a submission beside; return the copy and a test's name.

    The first test of that part notes the time.
    """
    copy = Course(folder / "course")
    for name in ("grader", "problems", "solutions"):
        shutil.copytree(course.root / name, copy.root / name)
    for name in ("pyproject.toml", "course.toml"):
        shutil.copy(course.root / name, copy.root)
    problems = copy.of_part(part)
    for problem in problems:
        (folder / "one" / problem.id).mkdir(parents=True)
        shutil.copy(copy.solution(problem), folder / "one" / problem.id / "problem.py")
    test = note_in_first_test(problems[0], folder / "note")
    return copy, f"{problems[0].id[:2]}/{test}"


def note_in_first_test(problem: Problem, note: Path) -> str:
    """Let a problem's first test begin with `NOTE`, and return its name."""
    source = problem.test_file.read_text(encoding="utf-8")
    tests = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    first = next(node for node in tests if node.name.startswith("test_"))
    lines = source.splitlines()
    lines.insert(first.body[1].lineno - 1, "    _note()")  # behind the docstring
    start = min([first.lineno, *(mark.lineno for mark in first.decorator_list)]) - 1
    lines[start:start] = [*NOTE.replace("NOTE", repr(str(note))).splitlines(), "", ""]
    problem.test_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return first.name


def one_round(course: Course, test: str, folder: Path) -> dict[str, float]:
    """Return the CPU seconds of each command, each run once."""
    out, one, note = folder / "out", folder / "one", folder / "note"
    shutil.rmtree(out, ignore_errors=True)
    note.unlink(missing_ok=True)
    grade = [*GRADER, "grade", str(one), "--out", str(out)]
    found = {UNIT: cpu_seconds([sys.executable, "-c", "import torch"], course.root)}
    whole = cpu_seconds(grade, course.root, Path(f"{note}.command"))
    found |= {FIRST: float(note.read_text()), WHOLE: whole}
    found[NOTHING] = cpu_seconds(grade, course.root)
    found[REPLAY] = cpu_seconds([*GRADER, "replay", str(one), test, "--out", str(out)], course.root)
    found[DOCTOR] = cpu_seconds([*GRADER, "doctor"], course.root, may_fail=True)
    return found


def cpu_seconds(
    command: list[str], root: Path, note: Path | None = None, *, may_fail: bool = False
) -> float:
    """Run a command on the course at a root; return the CPU time of it and all that it started.

    Args:
        command: has to succeed, unless it `may_fail`.
        root: whose grader it is.
        note: a file that gets the command's process id.
        may_fail: whether any exit status will do.
    """
    environment = os.environ | {"PYTHONPATH": str(root)}
    process = subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.DEVNULL)
    if note is not None:
        note.write_text(str(process.pid))
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert may_fail or process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


def report(seconds: dict[str, list[float]]) -> None:
    """Print the medians and what they come to."""
    print("CPU seconds of all processes, and how many imports of torch that is")
    for name, values in seconds.items():
        # Neighbours in time met the same load, so ratios are taken turn by turn.
        ratios = [a / b for a, b in zip(values, seconds[UNIT], strict=True)]
        low, high = min(ratios), max(ratios)
        median = statistics.median(ratios)
        print(
            f"  {name:30} {statistics.median(values):6.2f}   {median:5.2f}"
            f"   ({low:.2f} to {high:.2f})"
        )


if __name__ == "__main__":
    main()
