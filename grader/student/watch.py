"""Test a problem each time it is saved, and show the first failed test.

A loop processes all events from one queue: saved files, pressed keys and results of runs.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

from rich.console import Console
from watchfiles import Change
from watchfiles import watch as changed_files

from grader.course import SUBMISSION_FILE, Course, Problem, in_solving_order, problems_to_solve
from grader.errors import CourseError
from grader.result import ProblemResult, shown
from grader.student import hints
from grader.student.progress import invitation, progress_table
from grader.student.report import (
    WIDTH,
    command_to_compare,
    failure_report,
    next_step,
    where_to_look,
    whole_points,
    wrapped,
)
from grader.student.screen import Screen, keys_of_terminal
from grader.student.seen import Reading, SeenMistakes, named
from grader.student.testing import tasks_to_do
from grader.student.warm import RunProgress, Runs
from grader.text import printable

_KEYS = "h hint · w name the mistake · n next · a all · q quit"


@dataclass(frozen=True)
class Saved:
    """Event: the files of the problems with these ids were saved."""

    ids: frozenset[str]


@dataclass(frozen=True)
class Key:
    """Event: a key was pressed."""

    letter: str


@dataclass(frozen=True)
class Unwatched:
    """Event: files can't be watched any longer. `reason` explains why."""

    reason: str


Event = Saved | Key | Unwatched | RunProgress


class Watch:
    """The loop of `grader watch`.

    An optional problem that the student has not begun is not tested until the student selects it.

    Args:
        course: the course with the problems to watch.
        console: the console to print to. Keys work if it is a terminal.
        start: the first problem to show; by default the first problem that does not pass.

    Attributes:
        events: the queue of events to process.
    """

    def __init__(self, course: Course, console: Console, start: Problem | None = None) -> None:
        self.events: Queue[Event] = Queue()
        self._course, self._console = course, console
        self._on_screen = console.is_terminal and sys.stdin.isatty()
        self._problems = {problem.id: problem for problem in course.problems()}
        self._chosen = start.id if start else ""
        self._results: dict[str, ProblemResult] = {}
        self._troubles: dict[str, str] = {}
        self._printed: dict[str, Mapping[str, str]] = {}
        self._waiting: list[str] = []
        self._running = ""
        self._partial = ProblemResult("")
        self._hints: Counter[str] = Counter()
        self._memory = SeenMistakes(course.root)
        self._readings: dict[str, Reading] = {}
        self._asked_why = ""

    def run(self) -> None:
        """Process events until the user quits.

        Raises:
            CourseError: files can't be watched.
        """
        self._runs = Runs(self._course.root, self.events.put)
        stop = threading.Event()
        with (
            keys_of_terminal(lambda key: self.events.put(Key(key)))
            if self._on_screen
            else nullcontext()
        ):
            try:
                Thread(target=self._watch_files, args=(stop,), daemon=True).start()
                self._test([self._chosen, *self._listed()] if self._chosen else self._listed())
                while self._handle(self._next_event()):
                    pass
            except KeyboardInterrupt:
                pass
            finally:
                stop.set()
                self._runs.close()

    def _next_event(self) -> Event:
        while True:
            with suppress(Empty):  # on Windows, Ctrl-C does not interrupt a waiting call
                return self.events.get(timeout=1)

    def _handle(self, event: Event) -> bool:
        """Process an event, and return whether the loop continues."""
        match event:
            case Saved(ids):
                self._chosen, self._asked_why = min(ids), ""
                self._test(sorted(ids))
            case RunProgress(run=run) if run == self._runs.number:
                self._save_progress(event)
            case Key(letter):
                return self._handle_key(letter)
            case Unwatched(reason):
                raise CourseError(f"files can't be watched here: {reason}")
        return True

    def _watch_files(self, stop: threading.Event) -> None:
        def is_work(change: Change, path: str) -> bool:
            file = Path(path)
            return file.name == SUBMISSION_FILE and file.parent.name in self._problems

        folder = self._course.root / "problems"
        try:
            for changes in changed_files(
                folder, watch_filter=is_work, stop_event=stop, debounce=200, step=20
            ):
                self.events.put(Saved(frozenset(Path(path).parent.name for _, path in changes)))
        except (OSError, RuntimeError) as error:
            self.events.put(Unwatched(str(error)))

    # Runs

    def _test(self, ids: list[str]) -> None:
        """Put these problems first in the queue of problems to test, and start a run."""
        unfinished = [self._running] if self._running else []
        self._waiting = list(dict.fromkeys([*ids, *unfinished, *self._waiting]))
        self._start_next()

    def _start_next(self) -> None:
        self._running = self._waiting.pop(0) if self._waiting else ""
        if self._running:
            self._partial = ProblemResult(self._running)
            self._runs.start(self._problems[self._running])
        else:
            self._runs.prepare()
        if self._on_screen or not self._running:
            self._show()

    def _save_progress(self, progress: RunProgress) -> None:
        """Save the results of the current run, and show its first failed test immediately."""
        id = progress.result.id
        self._printed[id] = progress.printed
        if progress.finished:
            self._results[id], self._troubles[id] = progress.result, progress.trouble
            self._readings[id] = self._new_reading(progress.result)
            if not progress.trouble:
                self._memory.save_passed(self._problems[id], progress.result)
            self._start_next()
            return
        news = _is_wrong(progress.result) and not _is_wrong(self._partial)
        self._partial = progress.result
        if news and self._on_screen and id == self._current:
            self._show()

    # Keys

    def _handle_key(self, letter: str) -> bool:
        """Process a pressed key, and return whether the loop continues."""
        match letter.lower():
            case "q" | "\x03" | "\x04":
                return False
            case "h":
                self._show(hint=True)
            case "w":
                self._asked_why = self._current
                self._readings[self._current] = self._new_reading(self._result(self._current))
                self._show()
            case "n":
                self._show_next()
            case "a":
                self._test(sorted(self._listed(), key=self._passes))
        return True

    def _show_next(self) -> None:
        """Select the next problem that does not pass or was not tested yet, and show it."""
        self._chosen = self._next_open() or self._current
        if self._chosen not in self._results and self._chosen != self._running:
            self._test([self._chosen])
        else:
            self._show()

    def _next_open(self) -> str:
        """Return the next problem after the current one that does not pass, or "" if all pass.

        Optional problems that the student has not begun come last.
        """
        ids = self._listed()
        here = ids.index(self._current)
        later = [*ids[here + 1 :], *ids[:here], *(id for id in self._problems if id not in ids)]
        return next((id for id in later if not self._passes(id)), "")

    def _passes(self, id: str) -> bool:
        return id in self._results and self._results[id].passed

    def _listed(self) -> list[str]:
        """Return the ids of the problems in the table: those to solve, and the selected problem."""
        begun = {problem.id for problem in problems_to_solve(self._problems.values())}
        return [id for id in self._problems if id in begun or id == self._chosen]

    @property
    def _current(self) -> str:
        """The id of the problem that was most recently saved or selected.

        If there is none, it is the id of the first problem that does not pass.
        """
        ids = [
            problem.id for problem in in_solving_order(self._problems[id] for id in self._listed())
        ]
        open_ids = (id for id in ids if not self._passes(id))
        return self._chosen or next(open_ids, min(self._problems))

    # The screen

    def _show(self, *, hint: bool = False) -> None:
        """Show the current problem, its first failed test, and the progress."""
        id = self._current
        result = self._result(id)
        if self._running == id and _is_wrong(self._partial):
            result = self._partial
        screen = Screen(
            headline=self._headline(id, result),
            text=self._text(id, result),
            hint=wrapped(self._next_hint(id, result), self._width) if hint else "",
            table=len(self._listed()) + 1,
            keys=_KEYS if self._on_screen else "",
        )
        if self._on_screen:
            screen = screen.fitted(self._console.width, self._console.height)
            self._console.clear()
        self._show_parts(screen)

    def _show_parts(self, screen: Screen) -> None:
        """Print the parts of a screen, with a blank line between them."""
        self._print("\n\n".join(p for p in (screen.headline, screen.text, screen.hint) if p))
        if screen.table:
            shown_results = [self._results.get(id, ProblemResult(id)) for id in self._listed()]
            self._print("")
            self._console.print(progress_table(shown_results, self._console.encoding))
        self._print(f"\n{screen.keys}" if screen.keys else "")

    def _text(self, id: str, result: ProblemResult) -> str:
        """Return the text about the first failed test, or about the next step."""
        if not result.tests and not self._troubles.get(id):
            return ""
        reading = self._reading(id, result)
        text = self._troubles.get(id) or failure_report(
            result, self._printed.get(id, {}), reading=reading, width=self._width
        )
        lines = [text or wrapped(next_step(result), self._width)]
        if where := where_to_look(self._problems[id], result):
            lines.append(where)
        if result.passed and (command := command_to_compare(self._problems[id])):
            lines.append(f"Other solutions, and their costs: {command}")
        if self._on_screen and result.passed and (further := self._next_open()):
            listed = self._listed()
            begun = [self._problems[id] for id in listed]
            optional = f"{invitation(begun, self._problems[further])}: press n."
            lines.append("For the next problem press n." if further in listed else optional)
        return "\n".join(lines)

    def _result(self, id: str) -> ProblemResult:
        return self._results.get(id, ProblemResult(id))

    def _new_reading(self, result: ProblemResult) -> Reading:
        """Return the sentences about the mistakes in a result.

        After the key `w` was pressed, they name the mistakes.
        """
        return named(result) if result.id == self._asked_why else self._memory.reading(result)

    def _reading(self, id: str, result: ProblemResult) -> Reading:
        """Return the sentences about the mistakes in a result, and mark the mistakes as seen."""
        if result is not self._results.get(id) or id not in self._readings:
            return Reading()  # no mistake is named before the run has finished
        reading = self._readings[id]
        self._memory.mark_seen(id, reading.seen)
        if reading.more and self._on_screen:
            return replace(reading, more="The name: press w.")
        return reading

    @property
    def _width(self) -> int:
        return min(WIDTH, self._console.width)

    def _headline(self, id: str, result: ProblemResult) -> str:
        if self._running == id:
            return f"{id}: testing ..."
        if not result.tests:
            return f"{id}: not yet run"
        return f"{id}: {shown(whole_points(result))} of {shown(result.max)} points"

    def _next_hint(self, id: str, result: ProblemResult) -> str:
        """Return a hint for a problem. Each call returns the hint of the next level."""
        level = self._hints[id] % len(hints.LEVELS) + 1
        self._hints[id] += 1
        problem = self._problems[id]
        try:
            return hints.show(problem, level, tasks_to_do(problem, result))
        except CourseError as error:
            return str(error)

    def _print(self, text: str) -> None:
        text = printable(text, self._console.encoding)
        self._console.print(text, markup=False, soft_wrap=True)  # the text is already wrapped


def _is_wrong(result: ProblemResult) -> bool:
    return any(test.is_wrong for test in result.tests)
