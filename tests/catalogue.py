"""Write mistakes of the course as files, and catalogues of mistakes for small courses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grader.course import Course, Problem, own_course
from grader.diagnose.edits import EDITS_FILE, mistakes_of

if TYPE_CHECKING:
    from grader.run.suite import Suite


def reference(number: str) -> str:
    """Return the text of the reference for a problem of this course."""
    (problem,) = own_course().select([number])
    return own_course().solution(problem).read_text(encoding="utf-8")


def mistake_files(course: Course, problem: Problem, folder: Path) -> dict[str, Path]:
    """Write each mistake of a problem as a complete file. Return the paths by mistake name."""
    files = {}
    for mistake in mistakes_of(course, problem):
        files[mistake.edit.name] = path = folder / f"{mistake.edit.name}.py"
        path.write_text(mistake.source, encoding="utf-8")
    return files


def write_mistakes(solutions: Path, mistakes: dict[str, tuple[str, str, str]]) -> Path:
    """Write a catalogue of mistakes, and return its path.

    Args:
        solutions: the folder of the problem's solutions.
        mistakes: maps each name to (sentence, line of the reference, replacement for the line).
    """
    entries = [
        f"== {name} (reference)\n# {when}\n# What is twice three?\n@\n-{old}\n+{new}\n"
        for name, (when, old, new) in mistakes.items()
    ]
    path = solutions / EDITS_FILE
    path.write_text("\n".join(entries), encoding="utf-8")
    return path


def first_case_ids(suite: Suite) -> list[str]:
    """Return one id for each test. For a parametrized test, it is the id with the first values."""
    first: dict[tuple[str, str], str] = {}
    for test in suite.tests:
        first.setdefault((test.problem.id, test.name), test.id)
    return [*first.values()]
