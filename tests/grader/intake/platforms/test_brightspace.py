"""Brightspace's downloads: a folder for each time that somebody handed in."""

from __future__ import annotations

import pytest

from tests.grader.intake.uploads import COURSE, ID, RIGHT, WRONG, Take, source, zip_file


@pytest.mark.parametrize("user_first", [True, False])
def test_brightspace(take: Take, user_first: bool) -> None:
    def folder(user: int, rest: str) -> str:
        return f"{user}-55 - {rest}" if user_first else f"55-{user} - {rest}"

    intake = take(
        {
            f"{folder(7, 'Ada Lovelace - Sep 24, 2024 926 PM')}/{ID}/problem.py": RIGHT,
            f"{folder(7, 'Ada Lovelace - Sep 24, 2024 1126 AM')}/{ID}/problem.py": WRONG,
            f"{folder(8, 'José - de - Mar - Oct 1, 2024 101 AM')}/hw.zip": zip_file(COURSE),
            f"{folder(9, 'Ada Lovelace - Sep 24, 2024 926 PM')}/notes.txt": b"",
            "index.html": b"",
        }
    )
    first, jose, second = sorted(intake.submissions, key=lambda s: s.identity)
    assert [s.identity for s in (first, jose, second)] == [f"brightspace:{n}" for n in (7, 8, 9)]
    assert [s.full_name for s in (first, jose, second)] == [
        *("Ada Lovelace", "José - de - Mar", "Ada Lovelace")
    ]
    assert [source(s) for s in (first, jose, second)] == [RIGHT, RIGHT, None]
    assert first.notes[0] == "The newest of 2 submissions was read."
    assert intake.recognised == ["Brightspace download: 3 students, 2 files not used."]


def test_numbers_that_tell_nothing(take: Take) -> None:
    """Then both, with the name, are who it is; nobody becomes another."""
    intake = take(
        {
            f"5-6 - Ada - Sep 24, 2024 926 PM/{ID}/problem.py": RIGHT,
            f"5-6 - Bea - Sep 24, 2024 926 PM/{ID}/problem.py": WRONG,
        }
    )
    assert {s.identity: source(s) for s in intake.submissions} == {
        "brightspace:5-6 Ada": RIGHT,
        "brightspace:5-6 Bea": WRONG,
    }


def test_which_is_newest_is_not_guessed(take: Take) -> None:
    intake = take(
        {
            f"5-6 - Ada - 24 septembre 2024 2126/{ID}/problem.py": RIGHT,
            f"5-6 - Ada - 25 septembre 2024 2126/{ID}/problem.py": WRONG,
            f"8-6 - Bea - 25 septembre 2024 2126/{ID}/problem.py": RIGHT,
        }
    )
    ada, bea = intake.submissions
    assert (source(ada), source(bea)) == (None, RIGHT)
    assert "more than once at one time; keep one" in ada.files[ID].reason
