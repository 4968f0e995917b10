"""Show the progress of a long run: as a bar on a terminal, or as occasional lines in a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

EVERY_SECONDS = 30.0
"""The seconds between two lines."""


def progress_bar(console: Console | None = None) -> Progress | ProgressLines:
    """Return a display of the finished tasks and the remaining time.

    Args:
        console: the console for the display; by default standard error.
    """
    console = console or Console(stderr=True, highlight=False)
    if not console.is_terminal:
        return ProgressLines(lambda text: console.print(text, markup=False, soft_wrap=True))
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


class ProgressLines(AbstractContextManager["ProgressLines"]):
    """Writes occasional lines, and one line at the end. For a short run it writes no lines.

    Args:
        write: writes a line.
        clock: returns the seconds of a clock.
        now: returns the time of day.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._write, self._clock, self._now = write, clock, now
        self._what = ""
        self._total = self._done = 0
        self._began = self._told = 0.0

    def __exit__(self, *raised: object) -> None:
        """Do nothing, because written lines remain."""

    def add_task(self, description: str, *, total: float | None) -> TaskID:
        """Begin to show a run. `update` may set its total later."""
        self._what = description
        task = TaskID(0)
        self.update(task, total=total)
        return task

    def update(self, task_id: TaskID, *, total: float | None) -> None:
        """Set the number of tasks."""
        self._total, self._done = int(total or 0), 0
        self._began = self._told = self._clock()

    def advance(self, task_id: TaskID) -> None:
        """Count one more finished task."""
        self._done += 1
        now = self._clock()
        if now - self._told >= EVERY_SECONDS and self._done < self._total:
            self._told = now
            left = (now - self._began) / self._done * (self._total - self._done)
            end = self._now() + timedelta(seconds=left)
            self._write(
                f"{self._what}: {self._done} of {self._total} done, {_duration(left)} left, "
                f"until about {end:%H:%M}"
            )
        elif self._done == self._total and self._told > self._began:
            self._write(f"{self._what}: {self._done} of {self._total} done")


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes} min" if minutes < 100 else f"about {minutes / 60:.0f} h"
