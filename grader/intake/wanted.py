"""Which members of an archive are read: problems' files, lists of students, when it came."""

from __future__ import annotations

from collections.abc import Sequence

from grader.course import OWN_TESTS, SUBMISSION_FILE
from grader.intake.limits import MAX_SOURCE_BYTES
from grader.intake.platforms.registry import LISTS, bytes_read, uploaded_as
from grader.intake.problem_names import Problems
from grader.intake.tree import Wanted

_LIST_DEPTH = 2  # a platform's list of students lies in the folder or the only one in it


def wanted(problems: Problems) -> Wanted:
    """Return what says of a member how many bytes it may have to be read."""

    def most_bytes(parts: Sequence[str]) -> int:
        name = parts[-1]
        if name in LISTS:
            return LISTS[name] if len(parts) <= _LIST_DEPTH else 0
        in_folder = (
            name in (SUBMISSION_FILE, OWN_TESTS)
            and len(parts) > 1
            and problems.of_folder(parts[-2])
        )
        is_read = bool(in_folder) or any(map(problems.of_file, uploaded_as(name)))
        return MAX_SOURCE_BYTES if is_read else bytes_read(name)

    return most_bytes
