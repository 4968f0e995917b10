"""The watch command tests each saved file, and its keys work in a terminal."""

from __future__ import annotations

import io
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
from rich.console import Console

from grader.course import Course
from grader.student.warm import RunProgress, Runs
from grader.student.watch import Key, Watch
from tests.processes import wait_until

SECONDS = 60
"""The time limit in seconds for a run. Only a run that hangs takes longer."""

RIGHT = "def double(x):\n    return x + x\n"
WRONG = "def double(x):\n    return 3 * x\n"
IGNORES_ALARMS = """
import signal
def double(x):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while True: pass
"""


@pytest.mark.slow
def test_each_saved_file_is_tested(small_course: Course) -> None:
    screen = io.StringIO()
    watch = Watch(small_course, Console(file=screen, width=100))
    thread = Thread(target=watch.run)
    thread.start()

    def save(source: str, words: str) -> str:
        seen = len(screen.getvalue())
        small_course.problems()[0].stub.write_text(source, encoding="utf-8")
        wait_until(lambda: words in screen.getvalue()[seen:])
        return screen.getvalue()[seen:]

    wait_until(lambda: "not started" in screen.getvalue(), failure="no first report")
    answer = save(WRONG, "in progress")
    assert "01-doubling: 0 of 2 points" in answer
    assert "double returns twice its argument" in answer
    assert "got      [3.0000, 3.0000]" in answer
    assert "done" in save(RIGHT, "Well done!")
    answer = save("def double(x):\n    print('x is', x)\n    return 3 * x\n", "in progress")
    assert "Your code printed:\n        x is tensor([1., 1.])" in answer
    save(RIGHT, "Well done!")
    assert "line 1: def double(x) return" in save("def double(x) return\n", "in progress")
    assert "can't import nothing" in save("import nothing\n", "in progress")
    assert "Does problem.py end it?" in save("import os\nos._exit(0)\n", "has ended")
    watch.events.put(Key("q"))
    thread.join(SECONDS)
    assert not thread.is_alive()


@pytest.fixture
def runs(small_course: Course) -> Iterator[tuple[Runs, Queue[RunProgress]]]:
    """Yield a `Runs` that ends a run after two seconds without a message, and the queue of
    messages.
    """
    found: Queue[RunProgress] = Queue()
    runs = Runs(small_course.root, found.put, silence=2.0)
    yield runs, found
    runs.close()


def finished_event(found: Queue[RunProgress]) -> RunProgress:
    while not (event := found.get(timeout=SECONDS)).finished:
        pass
    return event


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the file blocks a signal that Windows doesn't have")
def test_a_hanging_run_is_ended(
    runs: tuple[Runs, Queue[RunProgress]], small_course: Course
) -> None:
    problem = small_course.problems()[0]
    problem.stub.write_text(IGNORES_ALARMS, encoding="utf-8")
    runs[0].start(problem)
    assert finished_event(runs[1]).trouble == "Your code did not finish in time."


@pytest.mark.slow
def test_each_result_is_reported_at_once(
    runs: tuple[Runs, Queue[RunProgress]], small_course: Course
) -> None:
    problem = small_course.problems()[0]
    problem.stub.write_text(RIGHT, encoding="utf-8")
    runs[0].start(problem)
    counts = [len(runs[1].get(timeout=SECONDS).result.tests) for _ in range(3)]
    assert counts == [1, 2, 2]  # the last event reports the end of the run


@pytest.mark.slow
def test_a_new_run_ends_the_previous_run(
    runs: tuple[Runs, Queue[RunProgress]], small_course: Course
) -> None:
    problem = small_course.problems()[0]
    problem.stub.write_text("while True: pass\n", encoding="utf-8")
    runs[0].start(problem)
    problem.stub.write_text(RIGHT, encoding="utf-8")
    runs[0].start(problem)
    while (event := finished_event(runs[1])).run != runs[0].number:
        pass
    assert event.result.passed


IN_TERMINAL = """
from pathlib import Path
from rich.console import Console
from grader.course import Course
from grader.student.watch import Watch
if __name__ == "__main__":
    Watch(Course(Path({root!r})), Console(width=90, highlight=False)).run()
    print("left")
"""

HINT = "## double\n\n<details>\n<summary>Nudge</summary>\n\nWhat is x + x?\n\n</details>\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
@pytest.mark.slow
def test_keys_work_in_a_terminal(small_course: Course, tmp_path: Path) -> None:
    """The student's folder contains files with names of modules, such as `random.py`."""
    import pty
    import termios

    folder = small_course.problems()[0].folder
    (folder / "hints.md").write_text(HINT, encoding="utf-8")
    for name in ("random", "types", "numpy"):
        (folder / f"{name}.py").write_text("x = 1\n")
    script = tmp_path / "script.py"
    script.write_text(IN_TERMINAL.format(root=str(small_course.root)), encoding="utf-8")
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    command = [sys.executable, str(script)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, cwd=folder)
    seen = ""

    def read_until(words: str) -> None:
        nonlocal seen
        end = time.monotonic() + SECONDS
        while not re.search(words, seen):
            assert time.monotonic() < end, seen
            if select.select([ours], [], [], 0.1)[0]:
                seen += os.read(ours, 4096).decode(errors="replace")

    try:
        read_until("0 of 2 points")
        os.write(ours, b"h")
        read_until("What is x . x")
        os.write(ours, b"w")
        read_until("Next: double")
        os.write(ours, b"n")
        os.write(ours, b"q")
        read_until("left")
        assert process.wait(SECONDS) == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        os.close(ours)
        os.close(theirs)
