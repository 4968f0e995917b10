"""`grader mistake`: a known mistake as a whole file or a diff, or a list of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from grader.course import Course, Problem
from grader.diagnose.edits import Mistake, mistakes_of
from grader.errors import UsageError


def listed(course: Course, problem: Problem) -> Iterator[str]:
    """Yield a line for each mistake of a problem: its name, where it comes from, what it is.

    Raises:
        CourseError: the mistakes can't be read, or don't fit.
    """
    mistakes = [mistake.edit for mistake in mistakes_of(course, problem)]
    width = max((len(edit.name) for edit in mistakes), default=0)
    for edit in mistakes:
        yield f"{edit.name:{width}}  ({edit.base}) {edit.when}"


def shown(course: Course, problem: Problem, name: str, *, diff: bool = False) -> str:
    """Return a mistake as a whole file, or as what it changes in a right one.

    Raises:
        UsageError: there is no such mistake.
        CourseError: the mistakes can't be read, or don't fit.
    """
    found = {mistake.edit.name: mistake for mistake in mistakes_of(course, problem)}
    if name not in found:
        near = difflib.get_close_matches(name, found, 3)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(f"there is no mistake '{name}' in {problem.id}{meant}")
    return _diff(found[name]) if diff else found[name].source


def _diff(mistake: Mistake) -> str:
    before, after = (text.splitlines(keepends=True) for text in (mistake.right, mistake.source))
    return "".join(difflib.unified_diff(before, after, mistake.edit.base, mistake.edit.name))
