"""Which members of an archive are read: problems' files and lists of students."""

from __future__ import annotations

from collections.abc import Sequence

from grader.course import SUBMISSION_FILE
from grader.intake.limits import MAX_SOURCE_BYTES
from grader.intake.platforms.registry import LISTS, uploaded_as
from grader.intake.problem_names import Problems
from grader.intake.tree import Wanted

_LIST_DEPTH = 2  # a platform's list of students lies in the folder or the only one in it


def wanted(problems: Problems) -> Wanted:
    """Return what says of a member how many bytes it may have to be read."""

    def most_bytes(parts: Sequence[str]) -> int:
        name = parts[-1]
        if name in LISTS:
            return LISTS[name] if len(parts) <= _LIST_DEPTH else 0
        in_folder = name == SUBMISSION_FILE and len(parts) > 1 and problems.of_folder(parts[-2])
        names = uploaded_as(name)
        is_read = in_folder or any(map(problems.of_file, names))
        return MAX_SOURCE_BYTES if is_read else 0

    return most_bytes
