"""What a mark rests on: the student's file, the tests, the grader, the seed and so on.

It is kept with each mark, so that a later run knows which marks still hold.
"""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path

import torch

from grader.course import Course, Problem
from grader.grading.settings import Settings
from grader.intake.submissions import StudentFile

MARKS_REST_ON = ("*.py", "testing/**/*.py", "isolation/**/*.py", "grading/**/*.py")
"""The part of the grader that a mark depends on. What reads submissions is not in it, as marks rest
on what was read; nor are the reports, and what students and authors run."""


def own_sha256(course: Course) -> str:
    """Return a hash over all that marks depend on besides the submission: grader and course."""
    digest = hashlib.sha256(code_sha256().encode())
    for problem in course.problems():
        digest.update(tests_sha256(course, problem).encode())
    return digest.hexdigest()


@cache
def code_sha256() -> str:
    """Return a hash over the part of the grader that marks depend on, as it was when first asked.

    The running program doesn't change with its files either.
    """
    package = Path(__file__).resolve().parents[1]
    files = {path for pattern in MARKS_REST_ON for path in package.glob(pattern)}
    return _sha256({path.relative_to(package).as_posix(): path for path in files})


def tests_sha256(course: Course, problem: Problem) -> str:
    """Return a hash over a problem's tests, its solution, and what stands beside them.

    No mark hangs on the probe and its fingerprints, but the mistake that is named beside it does.
    """
    shared = problem.folder.parent.glob("*.py")
    files = {path.name: path for path in (*shared, *problem.folder.glob("*.json"))}
    files |= {"probe": problem.probe_file}
    files |= {"tests": problem.test_file, "solution": course.solution(problem)}
    return _sha256({name: path for name, path in files.items() if path.is_file()})


def _sha256(files: dict[str, Path]) -> str:
    digest = hashlib.sha256()
    for name, path in sorted(files.items()):
        digest.update(f"{name}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def grounds(course: Course, settings: Settings) -> dict[str, dict[str, str]]:
    """Return, for each problem, what its marks rest on besides the student's file."""
    same = {
        "grader": code_sha256(),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "seed": str(settings.seed),
        "limits": f"{settings.call_seconds:g} s, {settings.memory_mb} MB",
        "isolation": settings.level,
    }
    return {p.id: {"tests": tests_sha256(course, p)} | same for p in course.problems()}


def basis(file: StudentFile, ground: dict[str, str]) -> dict[str, str]:
    """Return what a problem's marks rest on. If nothing of it changed, they need not be renewed."""
    return {"submission": file.sha256 or file.reason} | ground
