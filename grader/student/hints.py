"""Read the hints of a problem from its `hints.md`, and format the hints of one level."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from grader.course import Problem
from grader.errors import CourseError, UsageError

HINTS_FILE = "hints.md"
"""The file with a problem's hints: a section for each task, and in it a `<details>` element for
each level."""

LEVELS = ("nudge", "idea", "plan")
"""The names of the levels, from level 1 to level 3. Higher levels reveal more."""

_SECTION = re.compile(r"^## (?P<task>.+)\n(?P<folds>(?:(?!## ).*(?:\n|\Z))*)", re.MULTILINE)
_FOLD = re.compile(r"<summary>(?P<level>[^<]+)</summary>\n(?P<text>.*?)\n</details>", re.DOTALL)


@dataclass(frozen=True)
class Hint:
    """A hint for one task.

    Attributes:
        task: the function, or the part of a class, that the hint is about.
        level: 1 for a nudge, 2 for the idea, 3 for a plan.
        text: the hint in Markdown.
    """

    task: str
    level: int
    text: str


def read_hints(problem: Problem) -> list[Hint]:
    """Return the hints of a problem in the order of `hints.md`.

    Raises:
        CourseError: `hints.md` is missing or contains no hints, or a hint's level is unknown.
    """
    page = problem.folder / HINTS_FILE
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    hints = []
    for section in _SECTION.finditer(text):
        for fold in _FOLD.finditer(section["folds"]):
            level = fold["level"].lower()
            if level not in LEVELS:
                raise CourseError(f"{page}: '{fold['level']}' is not one of {', '.join(LEVELS)}")
            number = LEVELS.index(level) + 1
            hints.append(Hint(section["task"], number, fold["text"].strip()))
    if not hints:
        raise CourseError(f"{page} has no hints")
    return hints


def matching(problem: Problem, part: str) -> list[str]:
    """Return the tasks with names that contain `part`, ignoring upper and lower case.

    Raises:
        UsageError: no task's name contains `part`.
        CourseError: the hints cannot be read.
    """
    matches = [task for task in tasks(problem) if part.lower() in task.lower()]
    if not matches:
        names = ", ".join(tasks(problem))
        raise UsageError(f"{problem.id} has no task '{part}'; there are: {names}")
    return matches


def tasks(problem: Problem) -> list[str]:
    """Return the names of the tasks that have hints, in the order of `hints.md`."""
    return list(dict.fromkeys(hint.task for hint in read_hints(problem)))


def show(problem: Problem, level: int, tasks: Collection[str]) -> str:
    """Return the hints of one level as text for the terminal.

    Args:
        problem: the problem with the hints.
        level: 1, 2 or 3.
        tasks: the tasks to show.

    Raises:
        CourseError: the hints cannot be read.
    """
    hints = read_hints(problem)
    chosen = [hint for hint in hints if hint.level == level and hint.task in tasks]
    head = f"{problem.id}, hint {level} of {len(LEVELS)}: {LEVELS[level - 1]}"
    return "\n\n".join([head, *(f"{hint.task}\n{hint.text}" for hint in chosen)])


def named(problem: Problem, words: str) -> list[str]:
    """Return the tasks whose names occur in a text.

    Most tasks are named after a function or class. Others have a name such as "The constructor". If
    the text contains `__init__`, return the tasks whose names start with "The", if there are any.

    Args:
        problem: the problem with the hints.
        words: the text, such as the title of a test.
    """
    names = tasks(problem)
    making = [task for task in names if task.startswith("The ") and "__init__" in words]
    return making or [task for task in names if re.search(rf"\b{re.escape(task)}\b", words)]
