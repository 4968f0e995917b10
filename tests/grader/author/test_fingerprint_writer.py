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
def fingerprint_text(small_course: Course) -> Callable[[], str]:
    """Return a function that audits a course with one mistake and returns its fingerprints."""
    mistake = ("the number is tripled", "    return x + x", "    return 3 * x")
    write_mistakes(small_course.root / "solutions/01-doubling", {"triples": mistake})

    def write() -> str:
        run_audit(small_course, small_course.problems(), 1, write_fingerprints=True)
        return small_course.problems()[0].fingerprints.read_text()

    return write


def append(path: Path, line: str) -> None:
    path.write_text(f"{path.read_text()}\n\n{line}\n")


@pytest.mark.parametrize("file", [REFERENCE, PROBE, TESTS])
def test_a_comment_changes_no_fingerprint(
    small_course: Course, fingerprint_text: Callable[[], str], file: str
) -> None:
    before = fingerprint_text()
    path = small_course.root / file
    path.write_text(f"# A first comment.\n{path.read_text()}")
    append(path, '"""A last text."""  # with a comment')
    assert fingerprint_text() == before


def test_code_changes_the_fingerprints(
    small_course: Course, fingerprint_text: Callable[[], str]
) -> None:
    before = fingerprint_text()
    append(small_course.root / REFERENCE, "other = 3")
    with_other_reference = fingerprint_text()
    assert with_other_reference != before
    append(small_course.root / PROBE, "other = 3")
    assert fingerprint_text() not in (before, with_other_reference)
