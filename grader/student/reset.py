"""Puts a problem's stub back and keeps what stood there."""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from pathlib import Path

from grader.course import Problem
from grader.errors import CourseError
from grader.files import write_whole, writing


def is_stub(problem: Problem) -> bool:
    """Return whether the student's file is the untouched stub.

    Raises:
        CourseError: the course has lost the stub.
    """
    return problem.stub.is_file() and problem.stub.read_bytes() == _original(problem)


def put_stub_back(problem: Problem) -> Path | None:
    """Write the stub and return where the student's file is kept; None if there was no file.

    Raises:
        CourseError: the course has lost the stub.
        CannotWrite: the folder can't be written.
    """
    original = _original(problem)
    kept = keep(problem.stub) if problem.stub.is_file() else None
    write_whole(problem.stub, original)
    return kept


def _original(problem: Problem) -> bytes:
    if not problem.kept_stub.is_file():
        raise CourseError(
            f"there is no stub to put back: {problem.kept_stub} is missing. "
            "A fresh copy of the course has it."
        )
    return problem.kept_stub.read_bytes()


def keep(file: Path) -> Path:
    """Copy a file to the first free name such as problem.py.bak-1, and return that."""
    content = file.read_bytes()
    for number in count(1):
        kept = file.with_name(f"{file.name}.bak-{number}")
        with writing(kept), suppress(FileExistsError):
            with kept.open("xb") as copy:  # x: never over a file that is there
                copy.write(content)
            return kept
    raise AssertionError("unreachable")
