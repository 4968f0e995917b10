"""Downloads of Moodle are read, with a folder for each student or without folders."""

from __future__ import annotations

import pytest

from tests.grader.intake.uploads import COURSE, ID, RIGHT, WRONG, Take, by_name, source, zip_file


@pytest.mark.parametrize("end", ["", "_"])
def test_a_moodle_download_is_read(take: Take, end: str) -> None:
    intake = take(
        {
            f"Ada Lovelace_7_assignsubmission_file{end}/{ID}/problem.py": RIGHT,
            f"Bea M\u00fcller_8_assignsubmission_file{end}/hw.zip": zip_file(COURSE),
            f"Bea M\u00fcller_8_assignsubmission_onlinetext{end}/onlinetext.html": b"",
            f"Group_5_assignsubmission_file{end}/hw/problem_01.py": RIGHT,
            f"Group_5_assignsubmission_file{end}/notes.txt": b"",
            f"Participant_6_assignsubmission_file{end}/softmax.py": b"",
            "grades.csv": b"",
        }
    )
    submissions = by_name(intake)
    assert list(submissions) == ["Ada Lovelace", "Bea M\u00fcller", "Group 5", "Participant 6"]
    assert [source(s) for s in submissions.values()] == [RIGHT, RIGHT, RIGHT, None]
    assert [s.members for s in submissions.values()] == [
        (f"Participant {n}",) for n in (7, 8, 5, 6)
    ]
    assert (
        "A text typed online was submitted, which is not graded."
        in submissions["Bea M\u00fcller"].notes
    )
    assert submissions["Group 5"].notes == [
        f"'hw/problem_01.py' was read as {ID}.",
    ]
    assert intake.recognised == ["Moodle download: 4 students, 4 files not used."]


def test_a_moodle_download_without_folders_is_read(take: Take) -> None:
    name = "Ada Lovelace_7_assignsubmission_file_"
    (submission,) = take(
        {f"{name}01-doubling.py": RIGHT, f"{name}problem_01.py": WRONG}
    ).submissions
    assert source(submission) is None
    assert submission.files[ID].bad
    assert "for 01-doubling: '01-doubling.py', 'problem_01.py'" in submission.files[ID].reason


def test_moodle_names_with_underscores_are_read_completely(take: Take) -> None:
    intake = take(
        {
            f"Ada_Love_lace_7_assignsubmission_file_/{ID}/problem.py": RIGHT,
            f"_8_assignsubmission_file_/{ID}/problem.py": WRONG,
            f"x_9_10_assignsubmission_file_/{ID}/problem.py": RIGHT,
            f"Default group_assignsubmission_file_/{ID}/problem.py": RIGHT,
        }
    )
    assert {s.identity: (s.full_name, s.members) for s in intake.submissions} == {
        "moodle:7": ("Ada_Love_lace", ("Participant 7",)),
        "moodle:10": ("x_9", ("Participant 10",)),
        "moodle:group Default group": ("Default group", ("Default group",)),
        "moodle:group _8": ("_8", ("_8",)),
    }


def test_a_file_name_does_not_change_the_student(take: Take) -> None:
    forged = "9_assignsubmission_file_01-doubling.py"
    intake = take(
        {
            f"Ada_7_assignsubmission_file_x_{forged}": WRONG,
            f"Default group_assignsubmission_file_x_{forged}": WRONG,
        }
    )
    assert {s.identity for s in intake.submissions} == {"moodle:7", "moodle:group Default group"}
