"""Record the inputs that a mark depends on: the student's file, tests, grader, seed and so on.

This provenance is saved with each result, so that a later run can check whether a mark is valid.
"""

from __future__ import annotations

import hashlib
import platform
import runpy
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from grader.code.course_modules import modules_used
from grader.course import Course, Problem
from grader.files import sha256_of
from grader.grade.packing import MARKS_DEPEND_ON, files_of
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile
from grader.result import Isolation, Provenance


def grader_sha256(course: Course) -> str:
    """Return a hash of all files of the grader and the course that marks depend on."""
    digest = hashlib.sha256(code_sha256().encode())
    for problem in course.problems():
        digest.update(tests_sha256(course, problem).encode())
    return digest.hexdigest()


@cache
def code_sha256() -> str:
    """Return a hash of the grader's files that marks depend on.

    The hash is cached, because changed files do not affect a running program.
    """
    package = Path(__file__).resolve().parents[1]
    files = files_of(package, MARKS_DEPEND_ON)
    return sha256_of({path.relative_to(package).as_posix(): path for path in files})


def tests_sha256(course: Course, problem: Problem) -> str:
    """Return a hash of the course's files and settings on which a problem's results depend.

    These include the tests, the probe, the solution, imported modules and data. Marks do not depend
    on the probe, but diagnoses do. The catalogue of mistakes has a separate hash, `words_sha256`,
    because a changed catalogue does not require grading.
    """
    data = [path for path in problem.folder.glob("*.json") if path != problem.fingerprints]
    asked = [p.read_bytes() for p in (problem.test_file, problem.probe_file) if p.is_file()]
    used = modules_used(asked, problem.folder.parent)
    files = {path.name: path for path in (*used, *data)}
    files |= {"probe": problem.probe_file}
    files |= {"tests": problem.test_file, "solution": course.solution(problem)}
    files |= {"salt": course.salt(problem)}
    files_sha256 = sha256_of({name: path for name, path in files.items() if path.is_file()})
    text = f"{files_sha256} {problem.part} {problem.entry}"
    return hashlib.sha256(text.encode()).hexdigest()


def words_sha256(problem: Problem) -> str:
    """Return a hash of a problem's catalogue of mistakes, or "" if the problem has none."""
    path = problem.fingerprints
    return sha256_of({path.name: path}) if path.is_file() else ""


def torch_version() -> str:
    """Return `torch.__version__` without loading torch, because loading takes seconds."""
    return str(_about_torch()["__version__"])


def torch_cuda() -> str | None:
    """Return the CUDA version of the installed torch without loading torch.

    Return None for a build without CUDA.
    """
    return _about_torch().get("cuda")


@cache
def _about_torch() -> dict[str, Any]:
    return runpy.run_path(str(distribution("torch").locate_file("torch/version.py")))


def common_provenance(course: Course, settings: Settings) -> dict[str, Provenance]:
    """Map the id of each problem to the provenance that all students share."""
    same = Provenance(
        grader=code_sha256(),
        python=platform.python_version(),
        torch=torch_version(),
        seed=settings.seed,
        limits=f"{settings.call_seconds:g} s, {settings.memory_mb} MB",
        isolation=Isolation(settings.isolation),
    )
    return {p.id: Provenance(**same, tests=tests_sha256(course, p)) for p in course.problems()}


def provenance(file: StudentFile, common: Provenance) -> Provenance:
    """Return the provenance of a problem's marks.

    The marks are valid as long as their provenance does not change.

    Args:
        file: the student's file.
        common: the problem's entry in the result of `common_provenance`.
    """
    return {"submission": file.sha256 or file.reason, **common}
