"""fingerprints.json changes only if its inputs change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grader.author.audit import run_audit
from grader.course import Course
from tests.catalogue import write_mistakes

REFERENCE = "solutions/01-doubling/problem.py"
PROBE = "problems/01-doubling/probe.py"
TESTS = "problems/01-doubling/test_doubling.py"


@pytest.fixture
def written(small_course: Course) -> Callable[[], str]:
    """Return a function that audits a course with one mistake and returns the fingerprints."""
    mistake = ("the number is tripled", "    return x + x", "    return 3 * x")
    write_mistakes(small_course.root / "solutions/01-doubling", {"triples": mistake})

    def write() -> str:
        run_audit(small_course, small_course.problems(), 1, write_fingerprints=True)
        return small_course.problems()[0].fingerprints.read_text()

    return write


def add(path: Path, line: str) -> None:
    path.write_text(f"{path.read_text()}\n\n{line}\n")


@pytest.mark.parametrize("file", [REFERENCE, PROBE, TESTS])
def test_a_comment_changes_no_fingerprint(
    small_course: Course, written: Callable[[], str], file: str
) -> None:
    before = written()
    path = small_course.root / file
    path.write_text(f"# A first comment.\n{path.read_text()}")
    add(path, '"""A last text."""  # with a comment')
    assert written() == before


def test_code_changes_the_fingerprints(small_course: Course, written: Callable[[], str]) -> None:
    before = written()
    add(small_course.root / REFERENCE, "other = 3")
    with_other_reference = written()
    assert with_other_reference != before
    add(small_course.root / PROBE, "other = 3")
    assert written() not in (before, with_other_reference)
