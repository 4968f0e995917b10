"""The folder in which nbgrader collects."""

from __future__ import annotations

import unicodedata

import pytest

from tests.grader.intake.uploads import ID, OTHER, RIGHT, Take, source


@pytest.mark.parametrize("place", ["submitted", "course/submitted", "elsewhere"])
def test_nbgrader(take: Take, place: str) -> None:
    intake = take(
        {
            f"{place}/ada/attention/{ID}/problem.py": RIGHT,
            f"{place}/ada/attention/timestamp.txt": b"2024-01-31 15:58:23.948203 UTC\n",
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
    ada, bea, cho = intake.submissions
    assert [s.identity for s in (ada, bea, cho)] == ["nbgrader:ada", "nbgrader:bea", "nbgrader:cho"]
    assert ada.files[ID].handed_in == "2024-01-31T15:58:23.948203+00:00"
    assert (bea.files[ID].handed_in, cho.files[ID].handed_in) == ("", "")


def test_each_assignment_has_its_time(take_one: Take) -> None:
    """An assignment may be a problem; then its time is that problem's."""
    zones = {ID: b"2024-01-31 12:00:00 America/Los_Angeles", OTHER: b"2024-02-07 12:00:00"}
    files = {f"submitted/ada/{id}/timestamp.txt": time for id, time in zones.items()}
    files |= {f"submitted/ada/{id}/problem.py": RIGHT for id in zones}
    (first,) = take_one(files).submissions
    (second,) = take_one(files, problem="02", name="again").submissions
    assert first.files[ID].handed_in == "2024-01-31T12:00:00-08:00"
    assert second.files[OTHER].handed_in == "2024-02-07T12:00:00+00:00"


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_student_is_the_same_in_both_forms_of_unicode(take: Take, form: str) -> None:
    """On macOS é is written as two letters."""
    name = unicodedata.normalize(form, "ren\u00e9")
    (found,) = take({f"submitted/{name}/{ID}/problem.py": RIGHT}).submissions
    assert (found.identity, found.full_name) == ("nbgrader:ren\u00e9", "ren\u00e9")
