"""Exports of Gradescope are read with their list of students."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.grader.intake.uploads import ID, RIGHT, Take, by_name, source

METADATA = b"""---
submission_1:
  :submitters:
  - :name: Ada Lovelace
    :sid: '0012'
    :email: ada@example.edu
  :created_at: 2024-01-31 12:00:00.000000000 Z
  :score: 7.0
  :results:
    tests:
    - output: |-

        :submitters:
        - :name: Eve
submission_2:
  :submitters:
  - :name: Grace Hopper
    :sid: '13'
    :email: grace@example.edu
  - :name: "Hugo Mart\\u00edn"
    :sid: '14'
    :email:
  :created_at: 2024-01-31 04:00:00.500000000 -08:00
  :history:
  - :id: 7
    :created_at: 2023-01-31 12:00:00.000000000 Z
submission_30:
  :submitters:
  - :name: Imani
    :email: imani@example.edu
"""


@pytest.mark.parametrize("place", ["", "assignment_5_export/"])
def test_a_gradescope_export_is_read(take: Take, place: str) -> None:
    files = {
        "submission_metadata.yml": METADATA,
        f"submission_1/{ID}/problem.py": RIGHT,
        f"submission_2/hw/problems/{ID}/problem.py": RIGHT,
        f"submission_3/{ID}/problem.py": RIGHT,
        "submission_31.csv": b"",
    }
    intake = take({place + name: content for name, content in files.items()})
    submissions = by_name(intake)
    assert list(submissions) == [
        "Ada Lovelace",
        "Grace Hopper + Hugo Mart\u00edn",
        "submission_3",
        "Imani",
    ]
    assert submissions["Ada Lovelace"].members == ("ada@example.edu",)
    assert [s.identity for s in intake.submissions] == [
        "gradescope:ada@example.edu",
        "gradescope:14+grace@example.edu",
        "gradescope:submission_3",
        "gradescope:imani@example.edu",
    ]
    times = [s.files[ID].handed_in for s in intake.submissions]
    assert times == ["2024-01-31T12:00:00+00:00", "2024-01-31T04:00:00.500000-08:00", "", ""]
    group = submissions["Grace Hopper + Hugo Mart\u00edn"]
    assert group.members == ("grace@example.edu", "14")
    assert "A group of 2: 'grace@example.edu', '14'." in group.notes
    assert [source(s) for s in submissions.values()] == [RIGHT, RIGHT, RIGHT, None]
    assert submissions["submission_3"].notes == [
        "'submission_3' is not in submission_metadata.yml. Did you mean 'submission_30'?"
    ]
    assert "its folder is missing" in submissions["Imani"].notes[0]
    assert intake.recognised == ["Gradescope export: 5 students in 4 submissions, 1 file not used."]
    assert intake.unmatched == [
        "'submission_31.csv' was not used: it matches no student. Did you mean 'submission_3'?"
    ]


@pytest.mark.parametrize(
    "metadata", [b"", b"a: [", b"- 1", b"\xff", b"[" * 600, b"a: &x\n :submitters: *y"]
)
def test_without_a_readable_list_folder_names_are_used(take: Take, metadata: bytes) -> None:
    files = {"submission_metadata.yml": metadata}
    intake = take(files | {f"submission_1/{ID}/problem.py": RIGHT})
    assert [s.full_name for s in intake.submissions] == ["submission_1"]
    assert source(intake.submissions[0]) == RIGHT
    assert "the names of folders are used" in intake.unmatched[0]


def test_unreadable_times_are_listed(take: Take) -> None:
    text = METADATA.replace(b"2024-01-31 12:00:00.000000000 Z", b"yesterday", 1)
    assert text != METADATA
    intake = take({"submission_metadata.yml": text, f"submission_1/{ID}/problem.py": RIGHT})
    assert "lateness is unknown: Ada Lovelace (yesterday)." in " ".join(intake.unmatched)


def test_the_list_of_students_creates_no_python_objects(take: Take, tmp_path: Path) -> None:
    target = tmp_path / "made"
    evil = (
        f"submission_1:\n  :submitters:\n  - :name: !!python/object/apply:os.mkdir ['{target}']\n"
    )
    (submission,) = take(
        {"submission_metadata.yml": evil.encode(), f"submission_1/{ID}/problem.py": RIGHT}
    ).submissions
    assert source(submission) == RIGHT
    assert not target.exists()


def test_one_person_in_two_submissions_is_reported(take: Take) -> None:
    twice = (
        METADATA + b"submission_4:\n  :submitters:\n  - :name: Ada\n    :email: ada@example.edu\n"
    )
    intake = take({"submission_metadata.yml": twice, f"submission_4/{ID}/problem.py": RIGHT})
    assert "'ada@example.edu' is a member of 'Ada' and 'Ada Lovelace'" in intake.unmatched[-1]
