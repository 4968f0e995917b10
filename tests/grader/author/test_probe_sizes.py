"""The audit reports sizes in a probe that have the same relation in every call of a function."""

from __future__ import annotations

import pytest

from grader.author.probe_sizes import related_sizes
from grader.course import Course

REFERENCE = "def bytes_of(length, size=2):\n    return length * size\n"
PROBE = """
from grader.diagnose.probe import Part


def probe(problem):
    questions = {str(sizes): lambda sizes=sizes: problem.bytes_of(*sizes) for sizes in CALLS}
    return {"bytes_of": Part(main=questions)}
"""


@pytest.mark.parametrize(
    ("calls", "relations"),
    [
        ([(1, 1), (5, 3), (3,)], ["length + 1 = 2 * size"]),
        ([(1, 1), (5, 3), (4,)], []),
        ([(4,), (6, 3)], ["length = 2 * size"]),
        ([(3, 4), (5, 6)], ["length + 1 = size"]),
        ([(3, 2), (3, 2)], []),  # constant sizes are not reported
    ],
)
def test_related_sizes_are_found(
    calls: list[tuple[int, ...]], relations: list[str], small_course: Course
) -> None:
    (problem,) = small_course.problems()
    small_course.solution(problem).write_text(REFERENCE, encoding="utf-8")
    problem.probe_file.write_text(f"CALLS = {calls}\n{PROBE}", encoding="utf-8")
    related = [
        finding.partition("bytes_of, ")[2] for finding in related_sizes(small_course, problem)
    ]
    assert related == relations
