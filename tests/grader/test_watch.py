"""The watch command tests each saved file, and its keys work in a terminal."""

from __future__ import annotations

import io
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
from rich.console import Console

from grader.course import Course
from grader.student.warm import FoundSoFar, Runs
from grader.student.watch import Key, Watch
from tests.processes import wait_until

SECONDS = 60
"""More than anything here takes; only for what would hang."""

RIGHT = "def double(x):\n    return x + x\n"
WRONG = "def double(x):\n    return 3 * x\n"
DEAF = """
import signal
def double(x):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    while True: pass
"""


@pytest.fixture(scope="module")
def save(
    tmp_path_factory: pytest.TempPathFactory, new_course: Callable[[Path], Course]
) -> Iterator[Callable[[str, str], str]]:
    """Return a function that saves the watched file and returns the output that contains the given
    words.
    """
    course = new_course(tmp_path_factory.mktemp("watched") / "course")
    screen = io.StringIO()
    watch = Watch(course, Console(file=screen, width=100))
    thread = Thread(target=watch.run)
    thread.start()

    def answer(source: str, words: str) -> str:
        seen = len(screen.getvalue())
        course.problems()[0].stub.write_text(source, encoding="utf-8")
        wait_until(lambda: words in screen.getvalue()[seen:])
        return screen.getvalue()[seen:]

    wait_until(lambda: "not started" in screen.getvalue(), failure="no first report")
    yield answer
    watch.events.put(Key("q"))
    thread.join(SECONDS)
    assert not thread.is_alive()


@pytest.mark.slow
def test_a_save_is_answered(save: Callable[[str, str], str]) -> None:
    answer = save(WRONG, "in progress")
    assert "01-doubling: 0 of 2 points" in answer
    assert "double returns twice its argument" in answer
    assert "got      [3.0000, 3.0000]" in answer
    assert "done" in save(RIGHT, "Well done!")


ONE_REPORT = """
import sys
from pathlib import Path

from grader.course import Course
from grader.student.warm import Runs

if __name__ == "__main__":
    course = Course(Path(sys.argv[1]))
    runs = Runs(course.root, lambda found: print(found.result.tests, found.trouble, flush=True))
    runs.start(course.problems()[0])
    runs._running.join()
"""


@pytest.mark.slow
def test_files_named_like_modules_are_not_taken_for_these(
    small_course: Course, tmp_path: Path
) -> None:
    """The watch command works in a folder in which the student's files have names of modules."""
    script = tmp_path / "one_report.py"
    script.write_text(ONE_REPORT)
    folder = small_course.problems()[0].folder
    for name in ("random", "types", "numpy"):
        (folder / f"{name}.py").write_text("x = 1\n")
    done = subprocess.run(
        [sys.executable, str(script), str(small_course.root)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert "NOT_IMPLEMENTED" in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_what_is_printed_is_shown(save: Callable[[str, str], str]) -> None:
    answer = save("def double(x):\n    print('x is', x)\n    return 3 * x\n", "in progress")
    assert "Your code printed:\n        x is tensor([1., 1.])" in answer
    save(RIGHT, "Well done!")


@pytest.mark.slow
def test_what_a_file_does_when_it_is_imported_is_a_message(save: Callable[[str, str], str]) -> None:
    assert "line 1: def double(x) return" in save("def double(x) return\n", "in progress")
    assert "can't import nothing" in save("import nothing\n", "in progress")
    assert "Does problem.py end it?" in save("import os\nos._exit(0)\n", "has ended")
    save(RIGHT, "Well done!")


@pytest.fixture
def runs(small_course: Course) -> Iterator[tuple[Runs, Queue[FoundSoFar]]]:
    """Yield runs that end after two seconds without a message, and the queue of their messages."""
    found: Queue[FoundSoFar] = Queue()
    runs = Runs(small_course.root, found.put, silence=2.0)
    yield runs, found
    runs.close()


def finished(found: Queue[FoundSoFar]) -> FoundSoFar:
    while not (event := found.get(timeout=SECONDS)).finished:
        pass
    return event


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the file blocks a signal that Windows doesn't have")
def test_a_run_that_hangs_is_ended(
    runs: tuple[Runs, Queue[FoundSoFar]], small_course: Course
) -> None:
    problem = small_course.problems()[0]
    problem.stub.write_text(DEAF, encoding="utf-8")
    runs[0].start(problem)
    assert finished(runs[1]).trouble == "Your code did not come to an end."


@pytest.mark.slow
def test_each_result_is_reported_at_once(
    runs: tuple[Runs, Queue[FoundSoFar]], small_course: Course
) -> None:
    problem = small_course.problems()[0]
    problem.stub.write_text(RIGHT, encoding="utf-8")
    runs[0].start(problem)
    counts = [len(runs[1].get(timeout=SECONDS).result.tests) for _ in range(3)]
    assert counts == [1, 2, 2]  # the last one has the whole result


@pytest.mark.slow
def test_a_new_run_ends_the_one_before(
    runs: tuple[Runs, Queue[FoundSoFar]], small_course: Course
) -> None:
    problem = small_course.problems()[0]
    problem.stub.write_text("while True: pass\n", encoding="utf-8")
    runs[0].start(problem)
    problem.stub.write_text(RIGHT, encoding="utf-8")
    runs[0].start(problem)
    while (event := finished(runs[1])).run != runs[0].number:
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
    import pty
    import termios

    page = small_course.problems()[0].folder / "hints.md"
    page.write_text(HINT, encoding="utf-8")
    script = tmp_path / "script.py"
    script.write_text(IN_TERMINAL.format(root=str(small_course.root)), encoding="utf-8")
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen([sys.executable, str(script)], stdin=theirs, stdout=theirs)
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
