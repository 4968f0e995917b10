"""Write mistakes of the course as files, and catalogues for the small courses of tests."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grader.course import Course, Problem, own_course
from grader.diagnose.edits import EDITS_FILE, mistakes_of

if TYPE_CHECKING:
    from grader.run.suite import Suite


def reference(number: str) -> str:
    """Return the text of the reference of a problem of this course."""
    (problem,) = own_course().select([number])
    return own_course().solution(problem).read_text(encoding="utf-8")


def mistake_files(course: Course, problem: Problem, folder: Path) -> dict[str, Path]:
    """Write a problem's mistakes as complete files, and return their paths."""
    files = {}
    for mistake in mistakes_of(course, problem):
        files[mistake.edit.name] = path = folder / f"{mistake.edit.name}.py"
        path.write_text(mistake.source, encoding="utf-8")
    return files


def write_mistakes(solutions: Path, mistakes: dict[str, tuple[str, str, str]]) -> Path:
    """Write a catalogue of mistakes: a sentence, a line of the reference, and its replacement."""
    entries = [
        f"== {name} (reference)\n# {when}\n# What is twice three?\n@\n-{old}\n+{new}\n"
        for name, (when, old, new) in mistakes.items()
    ]
    path = solutions / EDITS_FILE
    path.write_text("\n".join(entries), encoding="utf-8")
    return path


def one_case_of_each(suite: Suite) -> list[str]:
    """Return the ids of all tests; for a test with several cases, only the id of the first case."""
    first: dict[tuple[str, str], str] = {}
    for test in suite.tests:
        first.setdefault((test.problem.id, test.name), test.id)
    return [*first.values()]
