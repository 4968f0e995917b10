"""The core of mistakes that students' own tests are to catch."""

from __future__ import annotations

import pytest

from grader.course import own_course
from grader.diagnose.edits import mistakes_of
from grader.run.worth_of_tests import targets

COURSE = own_course()


@pytest.mark.slow
@pytest.mark.parametrize("problem", COURSE.problems(), ids=lambda problem: problem.id)
def test_it_is_small_and_students_tests_can_see_it(problem):
    files = targets(COURSE, problem)
    assert 10 <= len({target.family for target in files if target.core}) <= 15
    marked = {mistake.edit.name for mistake in mistakes_of(COURSE, problem) if mistake.edit.core}
    assert marked <= {target.name for target in files if target.core}
