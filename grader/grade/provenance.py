"""What a mark rests on: the student's file, the tests, the grader, the seed and so on.

It is kept with each mark, so that a later run knows which marks still hold.
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
from grader.grade.packing import MARKS_REST_ON, files_of
from grader.grade.settings import Settings
from grader.intake.handed_in import StudentFile
from grader.result import Isolation, Provenance


def grader_sha256(course: Course) -> str:
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
    files = files_of(package, MARKS_REST_ON)
    return sha256_of({path.relative_to(package).as_posix(): path for path in files})


def tests_sha256(course: Course, problem: Problem) -> str:
    """Return a hash over a problem's tests, its solution, and what stands beside them.

    No mark depends on the probe, but the mistake that is named beside it does. What mistakes are
    named by and told in is left out (`words`): a new name is found in what is kept.
    """
    data = [path for path in problem.folder.glob("*.json") if path != problem.fingerprints]
    asked = [p.read_bytes() for p in (problem.test_file, problem.probe_file) if p.is_file()]
    used = modules_used(asked, problem.folder.parent)
    files = {path.name: path for path in (*used, *data)}
    files |= {"probe": problem.probe_file}
    files |= {"tests": problem.test_file, "solution": course.solution(problem)}
    files |= {"salt": course.salt(problem)}
    files_sha256 = sha256_of({name: path for name, path in files.items() if path.is_file()})
    told = f"{files_sha256} {problem.part} {problem.entry}"
    return hashlib.sha256(told.encode()).hexdigest()


def words_sha256(problem: Problem) -> str:
    """Return the hash of what a problem's mistakes are named by and told in; empty without any."""
    path = problem.fingerprints
    return sha256_of({path.name: path}) if path.is_file() else ""


def torch_version() -> str:
    """Return what `torch.__version__` says, without loading torch, which takes seconds."""
    return str(_about_torch()["__version__"])


def torch_cuda() -> str | None:
    """Return for which CUDA torch was built, in the same way; None if for none."""
    return _about_torch().get("cuda")


@cache
def _about_torch() -> dict[str, Any]:
    return runpy.run_path(str(distribution("torch").locate_file("torch/version.py")))


def common_provenance(course: Course, settings: Settings) -> dict[str, Provenance]:
    """Return, for each problem, what its marks rest on besides the student's file."""
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
    """Return what a problem's marks rest on. If nothing of it changed, they need not be renewed.

    Args:
        file: the student's.
        common: what `common_provenance` says of the problem.
    """
    return {"submission": file.sha256 or file.reason, **common}
