"""Google Classroom's folders don't say whose a file is; that is said, and nothing is guessed."""

from __future__ import annotations

import pytest

from grader.errors import SubmissionError
from tests.grader.intake.uploads import ID, RIGHT, Take


@pytest.mark.parametrize("place", ["", "Homework 1/"])
def test_a_folder_of_google_drive_is_refused(take: Take, place: str) -> None:
    files = {f"{place}problem.py": RIGHT, f"{place}problem (1).py": RIGHT}
    with pytest.raises(
        SubmissionError, match="Google Drive.* doesn't say whose file is whose: put"
    ):
        take(files, name="Homework 1-20240131T102233Z-001")


def test_students_folders_out_of_google_drive_are_a_class(take: Take) -> None:
    files = {f"{name}/{ID}/problem.py": RIGHT for name in ("ada", "bea")}
    intake = take(files, name="Homework 1-20240131T102233Z-001")
    assert [s.identity for s in intake.submissions] == ["ada", "bea"]
