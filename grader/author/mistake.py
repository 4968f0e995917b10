"""Show the complete file that contains a known mistake."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from grader.course import Course, Problem
from grader.diagnose.edits import mistakes_of
from grader.errors import UsageError


def mistaken_file(course: Course, problems: Sequence[Problem], name: str) -> str:
    """Return the complete code of the file that contains a mistake.

    Args:
        course: the course with the mistakes.
        problems: a sequence that must contain exactly one problem.
        name: the name of the mistake.

    Raises:
        UsageError: there is not exactly one problem, or the name is unknown.
        CourseError: the problem's `mistakes.edits` cannot be read or applied.
    """
    if len(problems) != 1:
        raise UsageError("Give the number of one problem, for example: audit 05 --show NAME")
    sources = {each.edit.name: each.source for each in mistakes_of(course, problems[0])}
    if name not in sources:
        near = difflib.get_close_matches(name, sources, 3)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(f"There is no mistake '{name}' in {problems[0].id}.{meant}")
    return sources[name]
