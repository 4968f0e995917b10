"""Which folders of the package go where. Its files at the top go everywhere."""

from __future__ import annotations

from pathlib import Path

FOR_STUDENTS = ("code", "diagnose", "run", "student")
"""What a student runs: the problems' tests, and the commands around them."""

FOR_AN_AUTOGRADER = (
    "code",
    "diagnose",
    "run",
    "boundary",
    "intake",
    "grade",
    "gradebook",
    "reports",
)
"""What grades submissions and writes reports."""

MARKS_REST_ON = ("code", "diagnose", "run", "boundary", "grade")
"""What a mark depends on. What reads submissions is not in it, as marks rest on what was read; nor
are the reports, and what students and authors run."""


def files_of(package: Path, folders: tuple[str, ...]) -> list[Path]:
    """Return the package's files at the top and all that is in some of its folders."""
    within = (path for folder in folders for path in (package / folder).rglob("*"))
    found = [*package.glob("*.py"), *within]
    return sorted(p for p in found if p.is_file() and "__pycache__" not in p.parts)
