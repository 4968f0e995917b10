"""The switches of `faults.py` are written down as edits of right files, and each edit fits.

They are to take the place of the switches. Until then nothing else reads them.
"""

from __future__ import annotations

import pytest

from grader.course import Problem, own_course
from grader.testing.edits import apply, mistakes_of, parse, right_files

COURSE = own_course()
WITH_SWITCHES = [
    p for p in COURSE.problems() if COURSE.solution(p).with_name("switches.edits").is_file()
]


@pytest.mark.parametrize("problem", WITH_SWITCHES, ids=lambda problem: problem.id)
def test_each_fits_its_right_file_and_is_no_other_mistake(problem: Problem) -> None:
    course = own_course()
    path = course.solution(problem).with_name("switches.edits")
    right = {n: p.read_text(encoding="utf-8") for n, p in right_files(course, problem).items()}
    known = {mistake.edit.name for mistake in mistakes_of(course, problem)}
    edits = parse(path.read_text(encoding="utf-8"), path.name)
    assert known.isdisjoint(edit.name for edit in edits)
    for edit in edits:
        compile(apply(edit, right[edit.base]), edit.name, "exec")
