"""List the grader's files for the students' copy, for an autograder, and for a mark's
provenance.
"""

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
"""The subpackages that grade submissions and write reports."""

MARKS_DEPEND_ON = ("code", "diagnose", "run", "sandbox", "grade")
"""The subpackages that marks depend on. Marks do not depend on the code that reads submissions,
writes reports, or implements the commands of students and authors."""


def files_of(package: Path, folders: tuple[str, ...]) -> list[Path]:
    """Return the package's files at the top level and in these folders."""
    within = (path for folder in folders for path in (package / folder).rglob("*"))
    files = [*package.glob("*.py"), *within]
    return sorted(p for p in files if p.is_file() and "__pycache__" not in p.parts)


def files_used(package: Path, sources: Iterable[bytes], *, without: str = "") -> list[Path]:
    """Return the package's files that these sources import, directly or through other files.

    Imports inside functions are included. Imports with a computed name are not.

    Args:
        package: the package's folder.
        sources: contents of Python files.
        without: a subpackage to leave out, together with the modules that only it imports.
    """
    sources = list(sources)
    packages = {package / "__init__.py"}
    while True:
        begun = (path.read_bytes() for path in packages)
        modules = modules_used([*begun, *sources], package.parent, without=without)
        used = {path for path in modules if path.is_relative_to(package)}
        files = packages | {p for path in used if (p := path.with_name("__init__.py")).is_file()}
        if files == packages:
            return sorted(used | packages)
        packages = files
