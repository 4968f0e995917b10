"""The course's known mistakes as files, and mistakes for courses that exist only in a test."""

from __future__ import annotations

from pathlib import Path

from grader.course import Course, Problem
from grader.diagnose.edits import EDITS_FILE, mistakes_of


def mistake_files(course: Course, problem: Problem, folder: Path) -> dict[str, Path]:
    """Write a problem's mistakes as whole files, and return where each is."""
    files = {}
    for mistake in mistakes_of(course, problem):
        files[mistake.edit.name] = path = folder / f"{mistake.edit.name}.py"
        path.write_text(mistake.source, encoding="utf-8")
    return files


def write_mistakes(solutions: Path, mistakes: dict[str, tuple[str, str, str]]) -> Path:
    """Write mistakes of the reference: of each the sentence, a line, and what replaces it."""
    entries = [
        f"== {name} (reference)\n# {when}\n# What is twice three?\n@\n-{old}\n+{new}\n"
        for name, (when, old, new) in mistakes.items()
    ]
    path = solutions / EDITS_FILE
    path.write_text("\n".join(entries), encoding="utf-8")
    return path
