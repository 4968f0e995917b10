"""The folder in which nbgrader collects."""

from __future__ import annotations

import pytest

from tests.intake.uploads import ID, RIGHT, Take, source


@pytest.mark.parametrize("place", ["submitted", "course/submitted", "elsewhere"])
def test_nbgrader(take: Take, place: str) -> None:
    intake = take(
        {
            f"{place}/ada/attention/{ID}/problem.py": RIGHT,
            f"{place}/ada/attention/timestamp.txt": b"2024-01-31",
            f"{place}/bea/{ID}/problem.py": RIGHT,
            f"{place}/bea/{ID}/timestamp.txt": b"2024-01-31",
            f"{place}/cho/attention/problem_01.py": RIGHT,
            f"{place}/cho/intro/notes.txt": b"",
        }
    )
    assert [(s.full_name, s.members, source(s)) for s in intake.submissions][:2] == [
        *(("ada", ("ada",), RIGHT), ("bea", ("bea",), RIGHT))
    ]
    assert intake.submissions[0].notes == []
    assert intake.recognised == ["nbgrader course: 3 students."]
