"""Choose the package's files for students, for an autograder and for the hash of a mark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from grader.code.course_modules import modules_used

FOR_AN_AUTOGRADER = (
    "code",
    "diagnose",
    "run",
    "sandbox",
    "intake",
    "grade",
    "gradebook",
    "reports",
)
"""What grades submissions and writes reports."""

MARKS_REST_ON = ("code", "diagnose", "run", "sandbox", "grade")
"""Packages that marks depend on. Marks depend on the submitted files, not on the code that reads
them, nor on reports and the commands of students and authors."""


def files_of(package: Path, folders: tuple[str, ...]) -> list[Path]:
    """Return the package's files at the top and in some of its folders."""
    within = (path for folder in folders for path in (package / folder).rglob("*"))
    found = [*package.glob("*.py"), *within]
    return sorted(p for p in found if p.is_file() and "__pycache__" not in p.parts)


def files_used(package: Path, sources: Iterable[bytes], *, without: str = "") -> list[Path]:
    """Return the package's files that some sources import, and those that these import.

    An import in a function counts as well. An import by a computed name does not.

    Args:
        package: the package's folder.
        sources: contents of Python files.
        without: a subpackage to leave out, with the modules that only it imports.
    """
    sources = list(sources)
    packages = {package / "__init__.py"}
    while True:
        begun = (path.read_bytes() for path in packages)
        modules = modules_used([*begun, *sources], package.parent, without=without)
        used = {path for path in modules if path.is_relative_to(package)}
        found = packages | {p for path in used if (p := path.with_name("__init__.py")).is_file()}
        if found == packages:
            return sorted(used | packages)
        packages = found
