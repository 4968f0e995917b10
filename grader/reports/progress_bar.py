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
"""The smallest number of seconds between two lines."""


def progress_bar(console: Console | None = None) -> Progress | ProgressLines:
    """Return a display of the number of finished tasks and the remaining time.

    Args:
        console: the console for the display. The default is standard error.
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
    """Writes occasional lines about a run, and one line at its end. Short runs write no lines.

    Args:
        write: a function that writes a line.
        clock: a function that returns the time in seconds.
        now: a function that returns the time of day.
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
        self._began = self._last_line = 0.0

    def __exit__(self, *raised: object) -> None:
        """Do nothing, because the written lines need not be removed."""

    def add_task(self, description: str, *, total: float | None) -> TaskID:
        """Start the display of a run. `update` can set the total number of tasks later."""
        self._what = description
        task = TaskID(0)
        self.update(task, total=total)
        return task

    def update(self, task_id: TaskID, *, total: float | None) -> None:
        """Set the total number of tasks, and restart the clock."""
        self._total, self._done = int(total or 0), 0
        self._began = self._last_line = self._clock()

    def advance(self, task_id: TaskID) -> None:
        """Count a finished task. Write a line if the previous line is `EVERY_SECONDS` old."""
        self._done += 1
        now = self._clock()
        if now - self._last_line >= EVERY_SECONDS and self._done < self._total:
            self._last_line = now
            left = (now - self._began) / self._done * (self._total - self._done)
            end = self._now() + timedelta(seconds=left)
            self._write(
                f"{self._what}: {self._done} of {self._total} done, {_duration(left)} left, "
                f"until about {end:%H:%M}"
            )
        elif self._done == self._total and self._last_line > self._began:
            self._write(f"{self._what}: {self._done} of {self._total} done")


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes} min" if minutes < 100 else f"about {minutes / 60:.0f} h"
