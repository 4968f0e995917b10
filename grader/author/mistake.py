"""Show the complete file of a mistake in the catalogue."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from grader.course import Course, Problem
from grader.diagnose.edits import mistakes_of
from grader.errors import UsageError


def mistaken_file(course: Course, problems: Sequence[Problem], name: str) -> str:
    """Return the complete code of a mistake.

    Raises:
        UsageError: `problems` has more or fewer than one problem, or the name is unknown.
        CourseError: the mistakes cannot be read or cannot be applied.
    """
    if len(problems) != 1:
        raise UsageError("Give the number of one problem, for example: audit 05 --show NAME")
    sources = {each.edit.name: each.source for each in mistakes_of(course, problems[0])}
    if name not in sources:
        near = difflib.get_close_matches(name, sources, 3)
        meant = f" Did you mean {' or '.join(near)}?" if near else ""
        raise UsageError(f"There is no mistake '{name}' in {problems[0].id}.{meant}")
    return sources[name]
